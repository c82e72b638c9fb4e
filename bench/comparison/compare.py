"""Scenarios × policies × seeds: which runs are needed, and what follows from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bench.comparison.campaign import Campaign, Outcomes
from bench.comparison.job import Job, job
from bench.comparison.randomness import random_parts
from bench.comparison.rows import PolicyFigures, figures_of
from bench.simulation.result import SimulationResult
from report.run_info import FORESEEING
from report.statistics import pareto_front

REFERENCES: Final = ("tail-aware", "algorithm-2")
"""The policy that others are compared with: the first of these that takes part, else the first of all."""


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A run without a result."""

    run: str
    why: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, by world and policy in the order asked for, and the runs that failed."""

    rows: tuple[PolicyFigures, ...]
    missing: tuple[Missing, ...]


@dataclass(frozen=True, slots=True)
class World:
    """A scenario with what is set over it. Policies are compared within one world."""

    scenario: str
    changes: tuple[tuple[str, Any], ...] = ()

    @property
    def settings(self) -> tuple[str, ...]:
        """What is set, as `--set` takes it."""
        return tuple(f"{key}={value}" for key, value in self.changes)

    def jobs(self, policy: str, seeds: int) -> list[Job]:
        """Return a job for each seed from 1, or a single one where nothing is left to chance."""
        first = job(self.scenario, policy, seed=1, changes=dict(self.changes))
        if not random_parts(first.question()):
            return [first]
        return [msgspec.structs.replace(first, seed=seed) for seed in range(1, seeds + 1)]


def world(scenario: str, changes: Mapping[str, Any] | None = None) -> World:
    """Return a world; the order in which changes are named makes no difference."""
    return World(scenario, tuple(sorted((changes or {}).items())))


def compare(campaign: Campaign, *, worlds: Sequence[World], policies: Sequence[str], seeds: int) -> Comparison:
    """Run every policy in every world, with seeds 1 … `seeds` where a seed makes a difference.

    Raises InvalidSettingsError before anything is computed.
    """
    jobs = {(one, policy): one.jobs(policy, seeds) for one in worlds for policy in policies}
    outcomes = campaign.run(one for some in jobs.values() for one in some)
    rows = [row for one in worlds for row in _rows(one, {policy: jobs[one, policy] for policy in policies}, outcomes)]
    missing = [Missing(run=str(one), why=why) for one, why in outcomes.failed.items()]
    return Comparison(rows=tuple(rows), missing=tuple(missing))


def reference_of(policies: Sequence[str]) -> str:
    """Return the policy that the others are compared with."""
    return next((name for name in REFERENCES if name in policies), policies[0])


def _rows(one: World, jobs: Mapping[str, Sequence[Job]], outcomes: Outcomes) -> list[PolicyFigures]:
    """Return the rows of one world; a policy that failed with any seed has none: half of it would mislead."""
    complete: dict[str, list[SimulationResult]] = {
        policy: [outcomes.results[each] for each in some]
        for policy, some in jobs.items()
        if all(each in outcomes.results for each in some)
    }
    front = _front(complete)
    reference = reference_of(list(jobs))
    return [
        figures_of(
            results,
            [] if policy == reference else complete.get(reference, []),
            scenario=one.scenario,
            policy=policy,
            settings=one.settings,
            random=random_parts(jobs[policy][0].question()),
            on_front=policy in front,
            reference_policy=reference,
        )
        for policy, results in complete.items()
    ]


def _front(complete: Mapping[str, Sequence[SimulationResult]]) -> set[str]:
    """Return the policies that no other beats, by their means."""
    playing = {policy: results for policy, results in complete.items() if policy not in FORESEEING}
    points = [
        (
            sum(result.in_sla for result in results) / len(results),
            sum(result.replica_minutes for result in results) / len(results),
        )
        for results in playing.values()
    ]
    return {list(playing)[number] for number in pareto_front(points)}
