"""`tailpack packing`: packing heuristics against each other, beside what their paper printed."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from studies.packing.claims import Comparison

app = typer.Typer(no_args_is_help=True, help="Packing heuristics: what they move and what they cost.")

QUICK_STREAMS, STREAMS = 3, 20
QUICK_ITERATIONS, ITERATIONS = 101, 501


@app.command()
def compare(
    *,
    streams: Annotated[int | None, typer.Option(help=f"Per study; {STREAMS}, quick {QUICK_STREAMS}.")] = None,
    delta: Annotated[
        list[int] | None, typer.Option(help="Largest step of a load; may be repeated.  [default: 5, 25]")
    ] = None,
    partitions: Annotated[list[int] | None, typer.Option(help="May be repeated.  [default: 200, 32]")] = None,
    iterations: Annotated[int | None, typer.Option(help=f"{ITERATIONS}, quick {QUICK_ITERATIONS}.")] = None,
    start: Annotated[int | None, typer.Option(help="First load of every partition.  [default: drawn]")] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds make equal streams.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Few and short streams: a look, not a result.")] = False,
    processes: Annotated[int | None, typer.Option(min=1, help="How many at once.  [default: one per core]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    into: Annotated[Path | None, typer.Option("--into", help="Folder that keeps the result as packing.json.")] = None,
) -> None:
    """Pack wandering loads with every heuristic: what moves, what it costs, and the paper's figures.

    Rscore: load that changes its owner, in capacities of a consumer. CBS: consumers above the least of the twelve.

    Example: tailpack packing compare --quick
    """
    from bench.comparison.workers import usable_cores  # noqa: PLC0415  the compiler only where it is needed
    from studies.packing.claims import combine  # noqa: PLC0415
    from studies.packing.compare import Question, done, jobs  # noqa: PLC0415

    try:
        question = Question(
            streams=(QUICK_STREAMS if quick else STREAMS) if streams is None else streams,
            deltas=tuple(delta or (5, 25)),
            partitions=tuple(partitions or (200, 32)),
            iterations=(QUICK_ITERATIONS if quick else ITERATIONS) if iterations is None else iterations,
            seed=seed,
            start=start,
            quick=quick,
        )
    except ValueError as wrong:
        raise TailpackError(str(wrong)) from None
    todo = jobs(question)
    ended = done(todo, processes or usable_cores())
    shown = track(ended, "streams", total=len(todo), console=Console(stderr=True), transient=True)
    comparison = combine(question, dict(shown))
    if into:
        _keep(comparison, into)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(comparison), indent=1) + b"\n")
    else:
        _show(comparison, Console())


@app.command()
def plot(file: Annotated[Path, typer.Argument(help="SVG file to write.")] = Path("docs/packing.svg")) -> None:
    """Draw Rscore against CBS from the committed comparison."""
    from bench.figures import load  # noqa: PLC0415
    from studies.packing.claims import PARTITIONS, PackingRow  # noqa: PLC0415
    from studies.packing.plot import draw  # noqa: PLC0415

    if not (kept := load(PackingRow)):
        raise TailpackError("nothing to draw yet: tailpack packing compare --into bench/reference")
    draw([study for study in kept[0].studies if study.partitions == PARTITIONS], file)
    Console().print(f"{file}: drawn", highlight=False)


def _keep(comparison: "Comparison", into: Path) -> None:
    from bench.figures import save  # noqa: PLC0415
    from studies.packing.claims import PackingRow  # noqa: PLC0415
    from tailpack.cli.bench import origin  # noqa: PLC0415

    save([PackingRow(**msgspec.structs.asdict(comparison), origin=origin())], PackingRow, into)


def _show(comparison: "Comparison", console: Console) -> None:
    from studies.packing.claims import plus_minus  # noqa: PLC0415

    for study in comparison.studies:
        title = f"{study.partitions} partitions, δ = {study.delta}: {study.streams} streams of {study.iterations}"
        table = Table("packer", "Rscore", "CBS %", "consumers", "moved", "front", box=None, title=title)
        for one in study.points:
            front = "●" if one.front else "○" if one.front_of_twelve else ""
            cells = (plus_minus(one.rscore), plus_minus(one.cbs, 100), plus_minus(one.consumers), plus_minus(one.moved))
            table.add_row(one.packer, *cells, front)
        console.print(table)
    table = Table("claim", "published", "ours", "verdict", box=None, title=comparison.source)
    for claim in comparison.claims:
        table.add_row(claim.claim, claim.published, claim.ours, claim.verdict)
    console.print("front: ● of all, ○ of the twelve alone", table)
