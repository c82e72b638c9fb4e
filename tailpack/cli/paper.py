"""`tailpack paper`: the papers' tables, ours beside theirs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console

if TYPE_CHECKING:
    from studies.paper.paper import PaperResult

app = typer.Typer()

SEEDS: Final = 5
QUICK_SEEDS: Final = 2


@app.command()
def paper(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Few seeds and streams: a look, not a result.")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help=f"Runs of each reading; {SEEDS}, quick {QUICK_SEEDS}.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder of finished runs and tables.")] = Path("out/paper"),
    processes: Annotated[int, typer.Option(min=0, help="How many; 0: one for each core.")] = 0,
    into: Annotated[Path | None, typer.Option("--into", help="Folder that takes the figures of the docs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows on standard output as JSON.")] = False,
) -> None:
    """Reproduce the tables of the two autoscaling papers and of the packing paper; judge each row by one rule.

    What is finished is kept in --out: after an interruption the same command goes on there. Exit status 1 when a run
    failed; a row that differs is a result.
    """
    from bench.comparison.workers import usable_cores  # noqa: PLC0415  numpy only where it is needed
    from studies.paper import closer_2024, iccbdc_2022, landau_2024  # noqa: PLC0415
    from studies.paper.paper import PaperResult, reproduce  # noqa: PLC0415
    from studies.paper.work import done  # noqa: PLC0415
    from tailpack.cli.campaigns import campaign  # noqa: PLC0415

    papers = (closer_2024.paper(), iccbdc_2022.paper())
    with campaign("the papers' runs", out, processes, done) as running:
        found = reproduce(running, papers, seeds=seeds or (QUICK_SEEDS if quick else SEEDS))
    with Console(stderr=True).status("the packing paper's streams"):
        packed = landau_2024.compared(out, processes=processes or usable_cores(), quick=quick)
    rows = (*found.rows, *landau_2024.rows(packed.claims, landau_2024.in_words(packed)))
    found = PaperResult(rows=rows, missing=found.missing)
    _write(found, out, into)
    _show(found, out, as_json=as_json)
    raise typer.Exit(1 if found.missing else 0)


def _write(found: "PaperResult", out: Path, into: Path | None) -> None:
    """Write the page, and the figures of the docs where they are asked for."""
    from bench import figures  # noqa: PLC0415
    from studies.paper.claim import PaperRow  # noqa: PLC0415
    from studies.paper.page import page  # noqa: PLC0415
    from tailpack.cli.bench import origin  # noqa: PLC0415  which imports Kafka's clients

    made = origin()
    (out / "paper.md").write_text(f"# The papers, reproduced\n\n{page(found.rows, [made])}", encoding="utf-8")
    (out / "paper.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    if into:
        rows = [PaperRow(**msgspec.structs.asdict(row), origin=made) for row in found.rows]
        figures.save(rows, PaperRow, into)


def _show(found: "PaperResult", out: Path, *, as_json: bool) -> None:
    from tailpack.cli.campaigns import finish, show  # noqa: PLC0415

    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        show((out / "paper.md").read_text(encoding="utf-8"))
    finish(found.missing, out)
