"""`tailpack bench targets`: the goals of tail-aware, all worlds with one set of defaults."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

app = typer.Typer()


@app.command()
def targets(
    *,
    seeds: Annotated[int, typer.Option(min=1, max=10_000, help="Runs of each where anything is random.")] = 20,
    only: Annotated[str, typer.Option(help="Scenarios, separated by commas; none: all.")] = "",
    out: Annotated[Path, typer.Option("--out", help="Folder of finished runs.")] = Path("out/targets"),
    processes: Annotated[int, typer.Option(min=0, help="How many; 0: one for each core.")] = 0,
    into: Annotated[Path | None, typer.Option("--into", help="Folder that takes the figures of the docs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures on standard output as JSON.")] = False,
) -> None:
    """Simulate tail-aware and its opponents in every world that has a goal; say which are reached.

    Exit status 1 when a run failed or a goal was missed.
    """
    from bench import figures  # noqa: PLC0415  numpy only where it is needed
    from bench.comparison.compare import compare  # noqa: PLC0415
    from bench.targets.catalogue import GOALS, OTHERS, POLICY  # noqa: PLC0415
    from tailpack.cli.bench import origin  # noqa: PLC0415  which imports this module
    from tailpack.cli.campaigns import campaign, finish, names  # noqa: PLC0415

    asked = names(only or ",".join(goal.world.scenario for goal in GOALS), _scenarios(), what="scenario")
    goals = [goal for goal in GOALS if goal.world.scenario in asked]
    with campaign("goals", out, processes) as running:
        found = compare(running, worlds=[goal.world for goal in goals], policies=(POLICY, *OTHERS), seeds=seeds)
    if into:
        made = origin()
        rows = [figures.TargetRow(**msgspec.structs.asdict(row), origin=made) for row in found.rows]
        figures.save(rows, figures.TargetRow, into)
    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    ours = {(row.scenario, row.settings): row for row in found.rows if row.policy == POLICY}
    missed = 0
    for goal in goals:
        row = ours.get((goal.world.scenario, goal.world.settings))
        reached = row is not None and goal.reached(row.in_sla, row.bound_ratio, row.replica_minutes)
        missed += not reached
        if row is not None:
            said = f"{100 * row.in_sla.mean:.3f} % at {row.replica_minutes.mean:.2f} r-m, {row.bound_ratio.mean:.3f} ×"
            name = ", ".join((goal.world.scenario, *goal.world.settings))
            typer.echo(f"{'reached' if reached else 'missed '}  {name}: {goal}: {said}", err=as_json)
    finish(found.missing, out)
    raise typer.Exit(1 if found.missing or missed else 0)


def _scenarios() -> list[str]:
    from bench.scenario import scenario_names  # noqa: PLC0415

    return scenario_names()
