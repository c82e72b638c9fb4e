"""`tailpack report`: the report of a run in any format, and runs against each other."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console

from tailpack.cli.options import AsJson, Master
from tailpack.cli.progress import next_step
from tailpack.errors import TailpackError
from tailpack.reporting import print_all

if TYPE_CHECKING:
    from report.page.sheets import Sheet

TABLES: Final = "tables"
"""Folder of CSV files in the folder of a run."""


class Format(StrEnum):
    """How a report is handed over."""

    HTML = "html"
    JSON = "json"
    MARKDOWN = "markdown"
    CSV = "csv"


AsFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        help="html: page in the folder, key figures here. json, markdown: all of it on standard output. "
        "csv: a file for each table in the folder, or one with --table on standard output.",
    ),
]
OneTable = Annotated[str, typer.Option("--table", metavar="NAME", help="With csv: this table, on standard output.")]


def run(
    source: Annotated[str, typer.Argument(metavar="RUN_DIR", help="Folder of a run; by default the newest.")] = "",
    *,
    events: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Parquet elsewhere: a file or folder, as a path, s3://, gs:// or hdfs://."),
    ] = None,
    journal: Annotated[
        str | None, typer.Option(metavar="URI", help="With --events; by default journal.parquet beside them.")
    ] = None,
    latency_target_s: Annotated[
        float | None, typer.Option(help="With --events and no run.json; a run brings its own.")
    ] = None,
    percentile: Annotated[float | None, typer.Option(help="Likewise: the share in time; by default 0.999.")] = None,
    master: Master = "local[2]",
    strict: Annotated[
        bool, typer.Option(help="Exit status 1 unless every event had each of its effects exactly once.")
    ] = False,
    form: AsFormat = Format.HTML,
    table: OneTable = "",
    others: Annotated[
        bool | None,
        typer.Option(help="Simulate the same events under other policies, too; by default those of a live run."),
    ] = None,
    kept: Annotated[bool, typer.Option("--kept", help="Use the existing result; compute nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Report on a run, live or simulated, or your own events; or hand over an earlier report.

    Your own: tailpack report NEW_FOLDER --events URI --latency-target-s SECONDS
    """
    from report.page import page  # noqa: PLC0415  only where a report is made
    from report.page.sheets import markdown_report, sheets  # noqa: PLC0415
    from tailpack.reporting import ReportInputs, add_other_policies, load_result, make_report, newest_in, show, whole  # noqa: PLC0415

    form = _chosen(form, table, as_json=as_json)
    console = Console(stderr=form is not Format.HTML)
    asked = ReportInputs(events, journal, latency_target_s, percentile)
    if kept and asked != ReportInputs():
        raise TailpackError("--kept computes nothing: leave out what says how")
    source = source or str(newest_in(Path("out")))
    folder = Path(source) if kept else make_report(source, asked, console, master=master)
    result = load_result(folder)
    if not kept and (result.world == "live" if others is None else others and result.world != "unknown"):
        result = add_other_policies(result, folder, console)
    elif kept and form is Format.HTML:
        page.write(result, folder / page.PAGE_FILE)
    if form is Format.MARKDOWN:
        print_all(markdown_report(result))
    elif form is Format.CSV:
        _print_csv(sheets(result), folder, table)
    else:
        show(result, folder, console, as_json=form is Format.JSON)
    page_at, other = folder / page.PAGE_FILE, "tailpack report compare RUN_DIR RUN_DIR"
    next_step(f"open {page_at}", other, as_json=form is not Format.HTML)
    raise typer.Exit(whole(result) if strict else 0)


def _chosen(form: Format, table: str, *, as_json: bool) -> Format:
    """Return the format that is wanted. Raises TailpackError where options contradict each other."""
    if as_json and form not in {Format.HTML, Format.JSON}:
        raise TailpackError(f"--json contradicts --format {form}")
    if table and form is not Format.CSV:
        raise TailpackError("--table is for --format csv")
    return Format.JSON if as_json else form


def _print_csv(sheets: "Iterable[Sheet]", folder: Path, table: str) -> None:
    """Print one table, or write all of them."""
    from report.page.sheets import csv_text, write_csv  # noqa: PLC0415

    by_name = {sheet.name: sheet for sheet in sheets}
    if not table:
        written = write_csv(by_name.values(), folder / TABLES)
        Console(stderr=True).print(f"written: {len(written)} tables in {folder / TABLES}", highlight=False)
    elif table in by_name:
        print_all(csv_text(by_name[table]))
    else:
        raise TailpackError(f"no table is called {table}; there are {', '.join(by_name)}")


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR RUN_DIR …", help="The first is the reference.")],
    *,
    form: Annotated[Format, typer.Option("--format", help="Format of the table.")] = Format.MARKDOWN,
    out: Annotated[Path | None, typer.Option("--out", help="File that takes the table instead of the screen.")] = None,
    master: Master = "local[2]",
    as_json: AsJson = False,
) -> None:
    """Compare runs of one load: a table of means, and of differences, with their intervals.

    Runs of one policy with several seeds are one contestant. A run that has no report yet gets one first.
    """
    from report import replace_file  # noqa: PLC0415  only where runs are compared
    from report.comparison import compare, markdown  # noqa: PLC0415
    from report.result import RESULT_FILE  # noqa: PLC0415
    from tailpack.reporting import ReportInputs, check_run, make_report  # noqa: PLC0415

    if form in {Format.CSV, Format.HTML}:
        raise TailpackError(f"a comparison has no --format {form}; it has markdown and json")
    for run in runs:
        check_run(run)
    if len({run.resolve() for run in runs}) < 2:
        raise TailpackError("name two runs or more, to compare them")
    for run in runs:
        if not (run / RESULT_FILE).exists():
            make_report(str(run), ReportInputs(), Console(stderr=True), master=master)
    found = compare(runs)
    if as_json or form is Format.JSON:
        text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"
    else:
        text = markdown(found)
    if out:
        replace_file(out, text)
    else:
        print_all(text)
