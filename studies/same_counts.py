"""Repeat the replica counts of a run, but let the group's assignor, or a random choice, place the partitions."""

import time
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from autoscaler.model import Decision, GroupObservation, Plan
from autoscaler.policies.planning import change, plan_for_count
from bench.matrix import Job, Row, simulate_job

SAME_COUNTS: Final = "its counts, placed by the group's assignor"
"""Mode in which a second run has the policy's counts at the same times, and the group places the partitions."""
BY_CHANCE: Final = "its counts; chance determines which partitions move"
"""As SAME_COUNTS, with an assignor that fixes only the number of moves. In Kafka the order of a hash set determines
which partitions move; here the seed does."""


def run_job(job: Job) -> Row:
    """Run a job of a paper."""
    if job.how not in (SAME_COUNTS, BY_CHANCE):
        return simulate_job(job)
    from autoscaler.simulator.run import simulate  # noqa: PLC0415  compiled code is loaded only for simulations
    from bench.simulation.run import analyse, run_scenario  # noqa: PLC0415
    from bench.simulation.sent_events import build_events, settings_of  # noqa: PLC0415

    began_s, question = time.perf_counter(), job.read_scenario()
    sent = build_events(question)
    placed, _ = run_scenario(question, sent, keep_events=False)
    counts = tuple((change.at_s, change.replicas) for change in placed.changes)
    chance = np.random.default_rng(question.seed) if job.how == BY_CHANCE else None
    replayed = Replayed(question.autoscaler.policy, counts, chance)
    run = simulate(sent.workload(), replayed, settings_of(question), keep_events=False)
    return dict(msgspec.to_builtins(analyse(question, sent, run, wall_s=time.perf_counter() - began_s)))


@dataclass(frozen=True, slots=True)
class Replayed:
    """A policy that repeats the counts of another run at the same times."""

    name: str
    counts: tuple[tuple[float, int], ...]
    """Pairs of a time in s and the number of replicas from then on, sorted by time."""
    chance: np.random.Generator | None = field(default=None, compare=False)
    """Chooses the partitions that move; None: the group chooses them."""
    replica_prefix: str = "payment"

    def decide(self, observation: GroupObservation) -> Decision:
        """Return a plan with the other run's count at this time."""
        due = [replicas for at_s, replicas in self.counts if at_s <= observation.at_s]
        count = due[-1] if due else observation.requested_replicas
        plan = plan_for_count(observation, count, self.replica_prefix)
        if self.chance is not None:
            plan = equal_counts(observation, plan, self.chance)
        return change(observation, plan, "the count of another run")


def equal_counts(observation: GroupObservation, plan: Plan, chance: np.random.Generator) -> Plan:
    """Return the plan with owners that have equal numbers of partitions (± 1), with the fewest moves."""
    owned: dict[str, list[int]] = {name: [] for name in plan.replicas}
    moving: list[int] = []
    for number in chance.permutation([load.partition for load in observation.partitions]).tolist():
        owned.get(observation.assignment.get(number, ""), moving).append(number)
    most, larger = divmod(len(observation.partitions), len(owned))
    for place, name in enumerate(sorted(owned, key=lambda name: -len(owned[name]))):
        room = most + (place < larger)
        moving += owned[name][room:]
        del owned[name][room:]
    for number in moving:
        min(owned.values(), key=len).append(number)
    return Plan(plan.replicas, {number: name for name, numbers in owned.items() for number in sorted(numbers)})
