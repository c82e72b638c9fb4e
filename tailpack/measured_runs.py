"""What is measured live for committed figures: whole runs, their processes, their start; and μ of one replica."""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from rich.console import Console

from bench import results
from bench.results import ClusterRow, LiveRow, SimulatedSide
from bench.scenario import load_scenario
from report.result import Result
from tailpack import provenance
from tailpack.run import Run

if TYPE_CHECKING:
    from bench.replay import Figures
    from bench.simulation.result import SimulationResult

Question = tuple[str, str, int]
"""Scenario, policy, seed."""


def run_scenario(scenario: str, changes: dict[str, object], out: Path, load_workers: int = 0) -> Path:
    """Run a scenario, say its verdict, return its folder."""
    console = Console(stderr=True)
    folder = Run(load_scenario(scenario, changes), console, out, load_workers=load_workers).execute()
    console.print(Result.load(folder).verdict, highlight=False, soft_wrap=True)
    return folder


def live_row(result: Result) -> LiveRow:
    """Return the row that stands for a run."""
    known = {name: getattr(result, name) for name in LiveRow.__struct_fields__ if hasattr(result, name)}
    return LiveRow(**known, lateness_p99_s=result.lateness.p99_s)


def cluster_row(result: Result) -> ClusterRow:
    """Return the row that stands for a run of pods."""
    rounds = result.rebalances.rounds if result.rebalances else ()
    pauses = [one.pause_s for one in rounds if one.pause_s is not None]
    p99, longest = (float(one) for one in np.percentile(pauses, (99, 100))) if pauses else (None, None)
    return ClusterRow(
        **msgspec.structs.asdict(live_row(result)),
        moved_partitions=result.moved_partitions,
        start_p50_s=result.starts.p50_s if result.starts else None,
        start_max_s=result.starts.max_s if result.starts else None,
        pause_p99_s=p99,
        pause_max_s=longest,
    )


def run_live(
    question: Question,
    out: Path,
    run: Callable[[str, dict[str, object], Path], Path] = run_scenario,
    *,
    load_workers: int = 0,
    changes: Mapping[str, object] = MappingProxyType({}),
    row_of: Callable[[Result], LiveRow] = live_row,
) -> LiveRow:
    """Run a scenario under a policy, simulate it again from its own events and times, and return the row.

    run: how; returns the run's folder. load_workers: processes that `run` lets share the load. changes: dotted key →
    value over the scenario's. row_of: makes the row, without what is simulated.
    """
    from bench.replay import replay  # noqa: PLC0415  compiled code

    folder = run(question[0], _told(question, changes), out)
    row = msgspec.structs.replace(row_of(Result.load(folder)), load_workers=load_workers, settings=said(changes))
    return msgspec.structs.replace(row, simulated=_beside(row, replay(folder).simulated))


def _told(question: Question, changes: Mapping[str, object]) -> dict[str, object]:
    _, policy, seed = question
    return {**changes, "autoscaler.policy": policy, "seed": seed}


def _beside(live: LiveRow, simulated: "Figures | SimulationResult") -> SimulatedSide | None:
    """Return what the simulator says of a live run, and how far that is from it; None where that is not known."""
    if live.replica_minutes is None or simulated.p999_s is None:
        return None
    return SimulatedSide(
        in_sla=simulated.in_sla,
        p999_s=simulated.p999_s,
        replica_minutes=simulated.replica_minutes,
        in_sla_points=100 * (simulated.in_sla - live.in_sla),
        replica_minutes_share=simulated.replica_minutes / live.replica_minutes - 1,
    )


def run_all(
    questions: Sequence[Question],
    into: Path,
    run: Callable[[Question], LiveRow],
    announce: Callable[[str], None],
    *,
    load_workers: int = 0,
    settings: tuple[str, ...] = (),
    answers: tuple[str, type[LiveRow]] = ("live", LiveRow),
) -> None:
    """Answer every question whose valid answer `into` does not hold yet; each is kept as soon as it is there.

    load_workers, settings: with these, which those answers must have had, too. answers: name of the file that holds
    them, and what they are.
    """
    name, kind = answers
    kept = [row.result for row in results.load(name, kind, into)]
    known = {asked(row) for row in kept if row.valid and (row.load_workers, row.settings) == (load_workers, settings)}
    still_open = [question for question in questions if question not in known]
    for number, question in enumerate(still_open, 1):
        scenario, policy, seed = question
        announce(f"{scenario}, {policy}, seed {seed}: {number} of {len(still_open)}")
        results.keep(name, [run(question)], provenance.origin(), into, place)


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


def place(row: LiveRow) -> tuple[object, ...]:
    """Return what no two rows of a file share."""
    return *asked(row), row.load_workers, row.settings


def said(changes: Mapping[str, object]) -> tuple[str, ...]:
    """Return what is set over a scenario as a row has it."""
    return tuple(f"{key}={value}" for key, value in sorted(changes.items()))
