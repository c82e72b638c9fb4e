"""`tailpack paper` and `tailpack packing`: published tables, ours beside them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench import results
from tailpack.cli.options import AsJson, IntoDocs, Out, Processes, print_json
from tailpack.cli.progress import campaign, deliver
from tailpack.errors import TailpackError
from tailpack.provenance import origin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from studies.packing.claims import Comparison
    from studies.published import Claim

SEEDS: Final = 5
QUICK_SEEDS: Final = 2
QUICK_STREAMS, STREAMS = 3, 20
QUICK_ITERATIONS, ITERATIONS = 101, 501


def paper(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Few seeds and streams: a look, not a result.")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help=f"Runs of each reading; {SEEDS}, quick {QUICK_SEEDS}.")
    ] = None,
    out: Out = Path("out/paper"),
    processes: Processes = 0,
    into: IntoDocs = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce the tables of the two autoscaling papers and of the packing paper; compare each row by one rule.

    What is finished is kept in --out: after an interruption the same command goes on there. Exit status 1 when a run
    failed; a row that differs is a result.
    """
    from bench.experiments.workers import usable_cores  # noqa: PLC0415  numpy only where it is needed
    from studies.paper import closer_2024, iccbdc_2022, landau_2024  # noqa: PLC0415
    from studies.paper.page import page  # noqa: PLC0415
    from studies.paper.statement import PaperResult, reproduce  # noqa: PLC0415
    from studies.paper.work import done  # noqa: PLC0415

    statements = [*closer_2024.statements(), *iccbdc_2022.statements()]
    with campaign("the papers' runs", out, processes, done) as running:
        found = reproduce(running, statements, seeds=seeds or (QUICK_SEEDS if quick else SEEDS))
    with Console(stderr=True).status("the packing paper's streams"):
        packed = landau_2024.compared(out, processes=processes or usable_cores(), quick=quick)
    rows = (*found.rows, *landau_2024.rows(packed))
    found = PaperResult(rows=rows, missing=found.missing)
    made = origin()
    if into:
        results.keep("paper", found.rows, made, into)
    text = f"# The papers, reproduced\n\n{page(found.rows, [made])}"
    deliver(found, text, out / "paper", as_json=as_json)


def packing_compare(
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
    processes: Processes = 0,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """Pack wandering loads with every heuristic: what moves, what it costs, and the paper's figures.

    Rscore: load that changes its owner, in capacities of a consumer. CBS: consumers above the least of the twelve.
    """
    from bench.experiments.workers import usable_cores  # noqa: PLC0415  the compiler only where it is needed
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
        results.keep("packing", [comparison], origin(), into)
    if as_json:
        print_json(comparison, indented=True)
    else:
        _show(comparison, Console())


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
    console.print("front: ● of all, ○ of the twelve alone")
    show_claims(comparison.claims, comparison.source, console)


def show_claims(claims: "Iterable[Claim]", source: str, console: Console) -> None:
    """Print each claim with its verdict. source: title of the table."""
    table = Table("claim", "published", "ours", "verdict", box=None, title=source)
    for claim in claims:
        table.add_row(claim.claim, claim.published, claim.ours, claim.verdict)
    console.print(table)
