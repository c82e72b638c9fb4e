"""What live runs measure for the committed figures: whole runs, the processes in them, the steps of their start."""

import random
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import msgspec
from rich.console import Console

from bench import results
from bench.results import LiveRow, ProcessRow, SimulatedSide, StartupRow
from bench.scenario import load_scenario
from report.result import Result
from report.run_info import RunInfo
from tailpack import provenance
from tailpack.local.resources import load_usages
from tailpack.run import Run

Question = tuple[str, str, int]
"""Scenario, policy, seed."""


def run_scenario(scenario: str, changes: dict[str, object], out: Path) -> Path:
    """Run a scenario, say its verdict, return its folder."""
    console = Console()
    folder = Run(load_scenario(scenario, changes), console, out).execute()
    console.print(Result.load(folder).verdict, highlight=False, soft_wrap=True)
    return folder


def live_row(result: Result) -> LiveRow:
    """Return the row that stands for a run."""
    known = {name: getattr(result, name) for name in LiveRow.__struct_fields__ if hasattr(result, name)}
    return LiveRow(**known, lateness_p99_s=result.lateness.p99_s)


def run_live(question: Question, out: Path) -> LiveRow:
    """Run a scenario under a policy, simulate it again from its own events and times, and return the row."""
    from bench.replay.replay import replay  # noqa: PLC0415  compiled code

    scenario, policy, seed = question
    folder = run_scenario(scenario, {"autoscaler.policy": policy, "seed": seed}, out)
    both, _, _ = replay(folder)
    again = SimulatedSide(
        in_sla=both.simulated.in_sla,
        p999_s=both.simulated.p999_s,
        replica_minutes=both.simulated.replica_minutes,
        in_sla_points=both.differences["in_sla_points"],
        replica_minutes_share=both.differences["replica_minutes_share"],
    )
    return msgspec.structs.replace(live_row(Result.load(folder)), simulated=again)


def run_all(
    questions: Sequence[Question], into: Path, run: Callable[[Question], LiveRow], announce: Callable[[str], None]
) -> None:
    """Answer every question whose valid answer `into` does not hold yet; each is kept as soon as it is there."""
    known = {asked(row.result) for row in results.load("live", LiveRow, into) if row.result.valid}
    still_open = [question for question in questions if question not in known]
    for number, question in enumerate(still_open, 1):
        scenario, policy, seed = question
        announce(f"{scenario}, {policy}, seed {seed}: {number} of {len(still_open)}")
        results.keep("live", [run(question)], provenance.origin(), into, asked)


def shuffled(scenarios: Sequence[str], policies: Sequence[str], runs: int, order: int) -> list[Question]:
    """Return every question in random order, round by round: at any time all have run as often, give or take one.

    order: seed of that order.
    """
    chance = random.Random(order)
    rounds = ([(*question, seed) for question in product(scenarios, policies)] for seed in range(1, runs + 1))
    return [question for one in rounds for question in chance.sample(one, len(one))]


def asked(row: LiveRow) -> Question:
    """Return what tells one run from another."""
    return row.scenario, row.policy, row.seed


def process_rows(folder: Path, rate: int) -> list[ProcessRow]:
    """Return what each process of the run in `folder` used under a steady load. rate: events/s."""
    topology = RunInfo.load(folder).topology
    return [
        ProcessRow(
            rate=rate,
            topology=topology,
            name=usage.name,
            cores=round(usage.cores, 3),
            peak_mib=round(usage.peak_mib, 1),
        )
        for usage in load_usages(folder / "processes.json")
        if not usage.name.startswith("spark")
    ]


def startup_rows(folder: Path) -> list[StartupRow]:
    """Return when the run in `folder` had done each step of its start."""
    return [StartupRow(step=step, at_s=at_s) for step, at_s in RunInfo.load(folder).phases_s.items()]
