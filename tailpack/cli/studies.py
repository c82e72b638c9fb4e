"""`tailpack dev paper`: reproduce the tables of published papers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from tailpack.cli.options import AsJson, Out, Processes, match_name, print_json
from tailpack.cli.progress import finish, matrix_progress, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.matrix_table import Missing
    from studies.verdict import Statement, StudyResult

NAMES: Final = ("ezzeddine", "landau", "consistent-grouping")


def paper(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help=f"One of {', '.join(NAMES)}; default: all.")
    ] = None,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use few seeds and short streams, for a first impression.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000,
            help="Number of seeds (default 5; --quick: 2), or of streams for landau (default 20; --quick: 3).",
        ),
    ] = None,
    out: Out = Path("out/paper"),
    processes: Processes = 0,
    as_json: AsJson = False,
) -> None:
    """Reproduce the tables of published papers, and print which statements hold.

    ezzeddine: two autoscaling papers; landau: packing heuristics; consistent-grouping: partitioners. Finished runs are
    stored in --out: after an interruption the same command continues there. Exit status 1 if a run failed, 0 if a
    statement differs.
    """
    from studies.verdict import StudyResult, page  # noqa: PLC0415  numpy only where it is needed

    rows: list[Statement] = []
    missing: list[Missing] = []
    for paper in [match_name(name.lower(), NAMES, what="paper")] if name else NAMES:
        with matrix_progress(paper, out) as announce:
            found = _study(paper, quick, seeds)(out / paper, processes=processes, announce=announce)
        rows += found.rows
        missing += found.missing
    result = StudyResult(rows=tuple(rows), missing=tuple(missing))
    text = page(result.rows)
    (out / "paper.md").write_text(text, encoding="utf-8")
    (out / "paper.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    if as_json:
        print_json(result)
    else:
        show(text)
    finish([(run.run, run.why) for run in missing], out)
    raise typer.Exit(1 if missing else 0)


def _study(name: str, quick: bool, seeds: int | None) -> "Callable[..., StudyResult]":
    """Return a function that reproduces a paper with these seeds. quick: whether it uses fewer events."""
    from functools import partial  # noqa: PLC0415

    from studies import consistent_grouping, ezzeddine, landau  # noqa: PLC0415  compiled code only where it is needed

    if name == "ezzeddine":
        return partial(ezzeddine.reproduce, seeds=seeds or (2 if quick else 5))
    short: dict[str, Any] = {}
    if name == "landau":
        short = {"streams": landau.QUICK_STREAMS, "iterations": landau.QUICK_ITERATIONS} if quick else {}
        return partial(landau.reproduce, **short | ({"streams": seeds} if seeds else {}))
    grouping = consistent_grouping
    short = {"seeds": grouping.QUICK_SEEDS, "events": grouping.QUICK_EVENTS} if quick else {}
    return partial(grouping.reproduce, **short | ({"seeds": seeds} if seeds else {}))
