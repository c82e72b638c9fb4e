"""`tailpack compare`: policies against each other, simulated."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from bench.matrix import Axis, Case, Contender, Matrix, axis_called, matrix_names, read_axes, read_matrix
from bench.matrix import sorted_changes as changes_of
from tailpack.cli.options import AsJson, Changes, Out, Processes, Trace, complete_scenario, parse_changes, print_json
from tailpack.cli.progress import finish, matrix_progress, show
from tailpack.errors import TailpackError

AXES: Final = "\n\n".join(
    f"{name}: {one.varies} ({', '.join(label for label, _ in one.points())})" for name, one in read_axes().items()
)


def compare(
    asked: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO…|MATRIX",
            help=f"Scenarios; or one matrix: {', '.join(matrix_names())}, or the path of a TOML file with `contender`.",
            autocompletion=complete_scenario,
        ),
    ],
    *,
    policies: Annotated[
        list[str] | None, typer.Option("--policy", help="May be repeated; none: all, or those of the matrix.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Runs of each where anything is random.  [default: 20]")
    ] = None,
    axis: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Vary one setting over a range:\n\n{AXES}")
    ] = None,
    trace: Trace = None,
    changes: Changes = None,
    best: Annotated[
        bool, typer.Option("--optimum", help="Also compute the cheapest possible schedule of each case and seed.")
    ] = False,
    out: Out = Path("out/compare"),
    processes: Processes = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate every policy in every scenario, and show which differences are more than chance.

    Finished runs are kept in --out: after an interruption the same command continues there. Exit status 1 when a run
    failed.
    """
    from bench.matrix_table import compare as run_matrix  # noqa: PLC0415  numpy only where it is needed
    from bench.matrix_table import draw, page  # noqa: PLC0415

    chosen = _matrix(asked)
    if policies:
        chosen = replace(chosen, contenders=[_contender(one) for one in policies], counts=())
    settings = parse_changes(changes)
    if trace:
        settings = {"load.trace": str(trace.absolute()), "load.spacing": "smooth"} | settings
    chosen = replace(
        chosen,
        seeds=seeds or chosen.seeds,
        axis=axis_called(axis) if axis else chosen.axis,
        optimum=best or chosen.optimum,
        settings=settings,
    )
    with matrix_progress("simulated runs", out) as announce:
        found = run_matrix(chosen, out, processes=processes, announce=announce)
    text = page(found)
    (out / "compare.md").write_text(text, encoding="utf-8")
    (out / "compare.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    if found.rows:
        draw(found, out / "compare.svg")
    if as_json:
        print_json(found)
    else:
        show(text)
    finish([(one.run, one.why) for one in found.missing], out)
    raise typer.Exit(1 if found.missing else 0)
