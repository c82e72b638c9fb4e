"""`tailpack report`: report on a run in any format, and compare runs."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from rich.console import Console

from report.spark import Task
from tailpack import reporting
from tailpack.cli.options import AsJson, Master
from tailpack.cli.progress import next_step
from tailpack.errors import TailpackError
from tailpack.reporting import check_run, make_report, print_all

if TYPE_CHECKING:
    from report.page.sheets import Sheet

TABLES: Final = "tables"
"""Folder of the CSV files, inside the folder of a run."""


class Format(StrEnum):
    """Output format of a report."""

    HTML = "html"
    JSON = "json"
    MARKDOWN = "markdown"
    CSV = "csv"


AsFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        help="html: write a page into the folder, print the key figures. json, markdown: print the whole report. "
        "csv: write each table as a file into the folder, or print the one of --table.",
    ),
]
OneTable = Annotated[str, typer.Option("--table", metavar="NAME", help="With --format csv: print this table.")]


def run(
    source: Annotated[str, typer.Argument(metavar="RUN_DIR", help="Folder of a run; default: the newest.")] = "",
    *,
    events: Annotated[
        str | None,
        typer.Option(
            metavar="URI", help="Your own events as a Parquet file or folder: a path, s3://, gs:// or hdfs://."
        ),
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Journal of your own events; default: journal.parquet next to them."),
    ] = None,
    latency_target_s: Annotated[
        float | None, typer.Option(help="Latency target of your own events, in seconds; a run has its own.")
    ] = None,
    percentile: Annotated[
        float | None, typer.Option(help="Share of your own events that must be in time; default: 0.999.")
    ] = None,
    master: Master = "",
    strict: Annotated[
        bool, typer.Option(help="Exit status 1 unless every event had each of its effects exactly once.")
    ] = False,
    form: AsFormat = Format.HTML,
    table: OneTable = "",
    others: Annotated[
        bool | None,
        typer.Option(help="Also simulate the events under other policies; default: for a live run, or a missed SLO."),
    ] = None,
    kept: Annotated[bool, typer.Option("--kept", help="Show the existing result without computing anything.")] = False,
    as_json: AsJson = False,
) -> None:
    """Report on a live or simulated run, or on your own events, or show an earlier report.

    Your own events: tailpack report NEW_FOLDER --events URI --latency-target-s SECONDS
    """
    from report.page import page  # noqa: PLC0415  only where a report is made
    from report.page.answers import NO_SCENARIO  # noqa: PLC0415
    from report.page.sheets import markdown_report, sheets  # noqa: PLC0415

    form = _requested_format(form, table, as_json=as_json)
    console = Console(stderr=form is not Format.HTML)
    slo = {"latency_target_s": latency_target_s, "percentile": percentile}
    own: dict[str, Any] = {"events": events, "journal": journal, **slo}
    if kept and {*own.values()} != {None}:
        raise TailpackError("--kept cannot be combined with --events, --journal, --latency-target-s or --percentile")
    source = source or str(reporting.newest_in(Path("out")))
    folder = Path(source) if kept else make_report(Task(folder=source, master=master, **own), console)
    result = reporting.load_result(folder)
    if others and not kept and result.world == "unknown":
        raise TailpackError(f"{NO_SCENARIO} Leave out --others; the report is in {folder}")
    wanted = result.world == "live" or not result.slo_met if others is None else others
    if not kept and wanted and result.world != "unknown":
        result = reporting.add_other_policies(result, folder, console)
    elif kept and form is Format.HTML:
        page.write(result, folder / page.PAGE_FILE)
    if form is Format.MARKDOWN:
        print_all(markdown_report(result))
    elif form is Format.CSV:
        _print_csv(sheets(result), folder, table)
    else:
        reporting.show(result, folder, console, as_json=form is Format.JSON)
    page_at, other = folder / page.PAGE_FILE, "tailpack report compare RUN_DIR RUN_DIR"
    next_step(f"open {page_at}", other, as_json=form is not Format.HTML)
    raise typer.Exit(reporting.exit_status(result) if strict else 0)


def _requested_format(form: Format, table: str, *, as_json: bool) -> Format:
    """Return the requested format. Raises TailpackError if options contradict each other."""
    if as_json and form not in {Format.HTML, Format.JSON}:
        raise TailpackError(f"--json cannot be combined with --format {form}")
    if table and form is not Format.CSV:
        raise TailpackError("--table needs --format csv")
    return Format.JSON if as_json else form


def _print_csv(sheets: "Iterable[Sheet]", folder: Path, table: str) -> None:
    """Print one table, or write all of them as files."""
    from report.page.sheets import csv_text, write_csv  # noqa: PLC0415

    by_name = {sheet.name: sheet for sheet in sheets}
    if not table:
        written = write_csv(by_name.values(), folder / TABLES)
        Console(stderr=True).print(f"written: {len(written)} tables in {folder / TABLES}", highlight=False)
    elif table in by_name:
        print_all(csv_text(by_name[table]))
    else:
        raise TailpackError(f"--table {table}: no such table; choose one of {', '.join(by_name)}")


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN_DIR RUN_DIR …", help="Folders of runs; the first is the reference.")
    ],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the table to this file instead of printing it.")
    ] = None,
    master: Master = "",
    as_json: AsJson = False,
) -> None:
    """Compare runs of the same load: print means and differences with their intervals.

    Runs of one policy with several seeds count as one contender. A run without a report gets one first.
    """
    from report import replace_file  # noqa: PLC0415  only where runs are compared
    from report.comparison import compare, markdown  # noqa: PLC0415
    from report.result import RESULT_FILE  # noqa: PLC0415

    for run in runs:
        check_run(run)
    if len({run.resolve() for run in runs}) < 2:
        raise TailpackError("name at least two different runs")
    for run in runs:
        if not (run / RESULT_FILE).exists():
            make_report(Task(folder=str(run), master=master), Console(stderr=True))
    found = compare(runs)
    as_object = msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"
    text = as_object if as_json else markdown(found)
    if out:
        replace_file(out, text)
    else:
        print_all(text)
