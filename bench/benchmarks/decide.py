"""Measure how long a policy takes for a decision, with skewed partitions and Poisson arrivals."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import GroupObservation, PartitionLoad, RecentArrivals, Replica
from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings
from bench.benchmark import QuickBenchmark, Row, Tools

POLICIES: Final = ("algorithm-2", "tail-aware")
SIZES: Final = ((100, 20), (1_000, 100), (10_000, 1_000))
"""Partitions and replicas."""
SHAPES: Final = {"evenly": (0.75, np.full(10, 0.1)), "in bursts": (0.375, np.eye(10)[7])}
"""Name → load of a replica as a share of its service rate (μ), and the distribution of the load over ten slots."""
WARM_UP_TICKS: Final = 12
"""Ticks until the policy has estimated how arrivals vary."""
MEASURED_TICKS: Final = 9
SERVICE_RATE: Final = 200.0
"""Service rate (μ), events/s."""


@dataclass(kw_only=True)
class Decide(QuickBenchmark):
    """Measure the CPU time of whole decisions with up to 10,000 partitions on 1,000 replicas."""

    def cases(self) -> Sequence[str]:
        """Return each size with each shape; only the smallest size if `quick`."""
        return [f"{size[0]}x{size[1]} {shape}" for size in SIZES[: 1 if self.quick else None] for shape in SHAPES]

    def measure(self, case: str, tools: Tools) -> Row:
        """Return the median CPU time per decision of each policy, in ms."""
        size, shape = case.split(" ", maxsplit=1)
        partitions, replicas = map(int, size.split("x"))
        medians_ms = {f"{name}_ms": statistics.median(ticks_ms(name, partitions, replicas, shape)) for name in POLICIES}
        return {"partitions": partitions, "replicas": replicas, "arrivals": shape, **medians_ms}


def ticks_ms(policy_name: str, partitions: int, replicas: int, shape: str) -> Iterator[float]:
    """Yield the CPU time of each measured tick in ms."""
    chance = np.random.default_rng(1)
    fill, by_slot = SHAPES[shape]
    weights = chance.exponential(size=partitions)
    mean = by_slot[:, None] * (weights * (fill * SERVICE_RATE * replicas / weights.sum()))
    policy = make_policy(policy_name, guards=GuardSettings())
    names = tuple(f"payment-{i}" for i in range(replicas))
    owners = {p: names[p % replicas] for p in range(partitions)}
    for tick in range(WARM_UP_TICKS + MEASURED_TICKS):
        observation = _observation(float(tick + 1), chance.poisson(mean), names, owners)
        begun_s = time.process_time()
        decision = policy.decide(observation)
        taken_s = time.process_time() - begun_s
        names, owners = decision.plan.replicas, dict(decision.plan.assignment or owners)
        if tick >= WARM_UP_TICKS:
            yield 1000 * taken_s


def _observation(
    at_s: float, counts: NDArray[np.int64], names: tuple[str, ...], owners: dict[int, str]
) -> GroupObservation:
    """Return the observation after an interval with these arrivals. Part of its last three slots is not served yet."""
    newest = counts[-3:].sum(axis=0).tolist()
    load = dict.fromkeys(names, 0)
    for partition, events in enumerate(newest):
        load[owners[partition]] += events
    unserved = {name: max(0.0, 1 - 0.3 * SERVICE_RATE / max(1, events)) for name, events in load.items()}
    loads = tuple(
        PartitionLoad(partition, float(events), round(recent * unserved[owners[partition]]))
        for partition, (events, recent) in enumerate(zip(counts.sum(axis=0).tolist(), newest, strict=True))
    )
    replicas = tuple(Replica(name, ready=True, late=0) for name in names)
    return GroupObservation(at_s, loads, replicas, owners, SERVICE_RATE, 0.05, recent=RecentArrivals(0.1, counts))
