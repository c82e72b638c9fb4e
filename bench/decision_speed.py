"""How long whole decisions take, and how that grows with the group.

Ticks of a steady group inside the guards: skewed partitions, Poisson arrivals, every decision carried out at once.
"""

import statistics
import time
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Decision, GroupObservation, PartitionLoad, RecentArrivals, Replica
from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings
from bench.results import DecisionRow

POLICIES: Final = ("algorithm-2", "tail-aware")
SIZES: Final = ((100, 20), (1_000, 100), (10_000, 1_000))
"""Partitions and replicas."""
SHAPES: Final = {"evenly": (0.75, np.full(10, 0.1)), "in bursts": (0.375, np.eye(10)[7])}
"""Load of a replica as a share of μ, and of its events by slot: a burst is only half served at the tick."""
WARM_UP: Final = 12
"""Ticks until the policy knows how arrivals vary."""
MEASURED: Final = 9
RATE: Final = 200.0
"""μ, events/s."""


def measure() -> Iterator[DecisionRow]:
    """Yield for each size and shape the median decision of each policy."""
    for partitions, replicas in SIZES:
        for shape in SHAPES:
            yield DecisionRow(
                partitions=partitions,
                replicas=replicas,
                arrivals=shape,
                ms={
                    name: statistics.median(ms for ms, _ in decisions(name, partitions, replicas, shape))
                    for name in POLICIES
                },
            )


def decisions(policy_name: str, partitions: int, replicas: int, shape: str) -> Iterator[tuple[float, Decision]]:
    """Yield the processor time in ms, and the decision, of each tick that is measured."""
    chance = np.random.default_rng(1)
    fill, by_slot = SHAPES[shape]
    weights = chance.exponential(size=partitions)
    mean = by_slot[:, None] * (weights * (fill * RATE * replicas / weights.sum()))
    policy = make_policy(policy_name, guards=GuardSettings())
    names = tuple(f"payment-{i}" for i in range(replicas))
    owners = {p: names[p % replicas] for p in range(partitions)}
    for tick in range(WARM_UP + MEASURED):
        counts = chance.poisson(mean)
        seen = observation(float(tick + 1), counts, names, owners)
        begun = time.process_time()
        decision = policy.decide(seen)
        taken = (time.process_time() - begun) * 1000
        names, owners = decision.plan.replicas, dict(decision.plan.assignment or owners)
        if tick >= WARM_UP:
            yield taken, decision


def observation(
    at_s: float, counts: NDArray[np.int64], names: tuple[str, ...], owners: dict[int, str]
) -> GroupObservation:
    """Return what is seen after an interval with these arrivals: of its last three slots, what was not served waits."""
    newest = counts[-3:].sum(axis=0)
    held = dict.fromkeys(names, 0)
    for partition, events in enumerate(newest.tolist()):
        held[owners[partition]] += events
    left = {name: max(0.0, 1 - 0.3 * RATE / max(1, events)) for name, events in held.items()}
    loads = tuple(
        PartitionLoad(partition, float(events), round(recent * left[owners[partition]]))
        for partition, (events, recent) in enumerate(zip(counts.sum(axis=0).tolist(), newest.tolist(), strict=True))
    )
    return GroupObservation(
        at_s,
        loads,
        tuple(Replica(name, ready=True, late=0) for name in names),
        owners,
        RATE,
        0.05,
        recent=RecentArrivals(0.1, counts),
    )
