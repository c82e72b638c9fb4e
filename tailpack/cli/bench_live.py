"""`tailpack bench live`: scenarios live under policies, several runs each in random order, and each simulated again."""

import random
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from bench import figures
from bench.figures import LiveRow, SimulatedSide
from report.result import Result

app = typer.Typer()

Question = tuple[str, str, int]
"""Scenario, policy, seed."""


@app.command()
def live(
    *,
    scenarios: Annotated[str, typer.Option(help="Names, separated by commas.")] = "w1,w1-skew9",
    policies: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "tail-aware,algorithm-2,linear,keda-hpa",
    runs: Annotated[int, typer.Option(min=1, help="So many of each, with seeds 1, 2, …")] = 3,
    order: Annotated[int, typer.Option(help="Seed of the order in which they take their turns.")] = 1,
    out: Annotated[Path, typer.Option("--out", help="Folder that takes a folder for each run.")] = Path("out"),
    into: Annotated[Path, typer.Option("--into", help="Folder that takes the figures.")] = figures.FOLDER,
) -> None:
    """Run scenarios live under policies, one after the other: eleven minutes each for w1. Keep the machine quiet.

    Each run is then simulated again from its own events and times. What `--into` has already is not measured again,
    unless it was invalid: the same command goes on where it was interrupted.
    """
    console = Console()
    asked = shuffled(scenarios.split(","), policies.split(","), runs, order)
    open_ones = [one for one in asked if one not in measured(figures.load(LiveRow, into))]
    for number, (scenario, policy, seed) in enumerate(open_ones, 1):
        console.rule(f"{scenario}, {policy}, seed {seed}: {number} of {len(open_ones)}")
        row = run_live(scenario, policy, seed, out)
        kept = [one for one in figures.load(LiveRow, into) if question(one) != question(row)]
        figures.save(sorted([*kept, row], key=question), LiveRow, into)  # an interruption keeps what was measured


def shuffled(scenarios: Sequence[str], policies: Sequence[str], runs: int, order: int) -> list[Question]:
    """Return every question in random order, round by round: all have run as often, give or take one, at any time."""
    chance = random.Random(order)
    return [one for seed in range(1, runs + 1) for one in _round(chance, scenarios, policies, seed)]


def _round(chance: random.Random, scenarios: Sequence[str], policies: Sequence[str], seed: int) -> Iterator[Question]:
    questions = [(scenario, policy, seed) for scenario, policy in product(scenarios, policies)]
    yield from chance.sample(questions, len(questions))


def run_live(scenario: str, policy: str, seed: int, out: Path) -> LiveRow:
    """Run, simulate again, and return the row."""
    from bench.replay.replay import replay  # noqa: PLC0415  compiled code
    from tailpack.cli.bench import live_row, run_scenario  # noqa: PLC0415  which registers this command

    folder = run_scenario(scenario, {"autoscaler.policy": policy, "seed": seed}, out)
    both, _, _ = replay(folder)
    again = SimulatedSide(
        in_sla=both.simulated.in_sla,
        p999_s=both.simulated.p999_s,
        replica_minutes=both.simulated.replica_minutes,
        in_sla_points=both.differences.in_sla_points,
        replica_minutes_share=both.differences.replica_minutes_share,
    )
    return msgspec.structs.replace(live_row(Result.load(folder)), simulated=again)


def measured(rows: Sequence[LiveRow]) -> set[Question]:
    """Return what need not be measured again."""
    return {question(row) for row in rows if row.valid}


def question(row: LiveRow) -> Question:
    """Return what tells one run from another."""
    return row.scenario, row.policy, row.seed
