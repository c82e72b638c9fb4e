"""`tailpack packing`: packing heuristics against each other, beside what their paper printed."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from studies.packing.compare import Done, Question

app = typer.Typer(
    no_args_is_help=True, help="Packing heuristics: what they move, what they cost, how long events wait."
)

QUICK_STREAMS, STREAMS = 3, 20
QUICK_ITERATIONS, ITERATIONS = 101, 501


@app.command()
def compare(
    *,
    streams: Annotated[int | None, typer.Option(min=1, help=f"Per study; {STREAMS}, quick {QUICK_STREAMS}.")] = None,
    delta: Annotated[
        list[int] | None,
        typer.Option(help="Largest step of a load in an iteration; may be repeated.  [default: 5, 25]"),
    ] = None,
    partitions: Annotated[
        list[int] | None, typer.Option(min=1, max=10_000, help="May be repeated.  [default: 200, 32]")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=2, help=f"Of a stream; {ITERATIONS}, quick {QUICK_ITERATIONS}.")
    ] = None,
    start: Annotated[
        int | None, typer.Option(help="First load of every partition; drawn at random if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds make equal streams.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Few and short streams: a look, not a result.")] = False,
    processes: Annotated[int | None, typer.Option(min=1, help="How many at once.  [default: one per core]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    into: Annotated[Path | None, typer.Option("--into", help="Folder that keeps the result as packing.json.")] = None,
) -> None:
    """Pack wandering loads with every heuristic; print what moves, what it costs, what waits, and the paper's figures.

    Rscore: load that changes its owner, in capacities of a consumer. CBS: consumers above the least of the twelve.
    """
    from bench.comparison.workers import usable_cores  # noqa: PLC0415  the compiler only where it is needed
    from studies.packing.compare import Question, combine  # noqa: PLC0415

    try:
        question = Question(
            streams=streams or (QUICK_STREAMS if quick else STREAMS),
            deltas=tuple(delta or (5, 25)),
            partitions=tuple(partitions or (200, 32)),
            iterations=iterations or (QUICK_ITERATIONS if quick else ITERATIONS),
            seed=seed,
            start=start,
            quick=quick,
        )
    except ValueError as wrong:
        raise TailpackError(str(wrong)) from None
    began_s = time.monotonic()
    done = _pack(question, processes or usable_cores())
    comparison = combine(question, done, round(time.monotonic() - began_s, 2))
    if into:
        from studies.packing.kept import keep  # noqa: PLC0415
        from tailpack.cli.bench import origin  # noqa: PLC0415

        keep(comparison, origin(), into)
    if as_json:
        sys.stdout.write(comparison.to_json().decode() + "\n")
    else:
        from tailpack.cli.packing_view import show  # noqa: PLC0415

        show(comparison, Console())


@app.command()
def plot(file: Annotated[Path, typer.Argument(help="SVG file to write.")] = Path("docs/packing.svg")) -> None:
    """Draw Rscore against CBS from the committed comparison."""
    from studies.packing.kept import kept  # noqa: PLC0415
    from studies.packing.plot import draw  # noqa: PLC0415
    from studies.packing.published import PARTITIONS  # noqa: PLC0415

    try:
        studies = kept().studies
    except FileNotFoundError:
        raise TailpackError("nothing to draw yet: tailpack packing compare --into bench/reference") from None
    draw([study for study in studies if study.partitions == PARTITIONS], file)
    Console().print(f"{file}: drawn", highlight=False)


def _pack(question: "Question", processes: int) -> "Sequence[Done]":
    """Do every job, on so many cores, and show on standard error how far it is."""
    from studies.packing.compare import do, jobs  # noqa: PLC0415
    from studies.packing.parallel import each  # noqa: PLC0415

    todo, done = jobs(question), []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("streams", total=len(todo))
        for one in each(do, todo, processes):
            done.append(one)
            shown.advance(task)
    return done
