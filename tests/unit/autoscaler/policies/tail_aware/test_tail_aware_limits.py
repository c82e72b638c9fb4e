"""Tests of a limit behind all replicas."""

import numpy as np
import pytest

from autoscaler.model import GroupObservation, PartitionLoad, Replica
from autoscaler.policies.registry import make_policy
from autoscaler.policies.tail_aware.limits import Limit
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import simulate
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings
from report.measures import replica_minutes

PARTITIONS = 4


class Backlog:
    """A group that is sent more than it serves, second by second; μ is the rate that its replicas reach."""

    def __init__(self, limit: float, own: float = 200.0) -> None:
        self.limit, self.own = limit, own
        self.learned = Limit()
        self.at_s = 0.0
        self.lag = np.full(PARTITIONS, 400.0)

    def run(self, replicas: int, seconds: int, sent: float = 400.0) -> float:
        served = min(self.limit, replicas * self.own)
        names = [f"payment-{number}" for number in range(replicas)]
        owners = np.arange(PARTITIONS) % replicas
        for _ in range(seconds):
            self.at_s += 1.0
            arrived = np.full(PARTITIONS, sent / PARTITIONS)
            self.lag = np.maximum(0.0, self.lag + arrived - served / PARTITIONS)
            observation = GroupObservation(
                at_s=self.at_s,
                partitions=tuple(PartitionLoad(p, sent / PARTITIONS, int(self.lag[p])) for p in range(PARTITIONS)),
                replicas=tuple(Replica(name, True) for name in names),
                assignment={p: names[owner] for p, owner in enumerate(owners)},
                service_rate=served / replicas,
                rebalance_time_s=0.05,
            )
            rates = np.full(replicas, served / replicas)
            self.learned.observe(observation, owners, self.lag, arrived, rates)
        return self.learned.rate


def test_replicas_without_effect_show_a_limit() -> None:
    assert Backlog(limit=1e9).run(1, 5) == np.inf
    group = Backlog(limit=1e9)
    group.run(1, 5)
    assert group.run(2, 5) == np.inf
    group = Backlog(limit=250.0)
    group.run(1, 5)
    assert group.run(4, 5, sent=500.0) == 250.0
    assert group.learned.least_rate == pytest.approx(200.0, rel=0.02), (
        "the rate of a replica without the limit is remembered"
    )


def test_a_limit_that_was_raised_or_wrong_is_forgotten() -> None:
    group = Backlog(limit=250.0)
    group.run(1, 5)
    group.run(4, 5, sent=500.0)
    group.limit = 400.0
    assert group.run(4, 3, sent=500.0) == np.inf
    slow = Backlog(limit=250.0)
    slow.run(1, 5)
    slow.run(4, 5, sent=500.0)
    slow.own = 40.0  # not a limit: two replicas serve still less than four
    assert slow.run(2, 5, sent=500.0) == np.inf


def test_a_limit_leaves_no_service_rate_correction() -> None:
    """Twice what the limit lets through for 20 s, then no limit: at 330 events/s two replicas serve on."""
    rates = [160] * 10 + [400] * 20 + [330] * 30
    at_s = np.concatenate([second + (np.arange(rate) + 0.5) / rate for second, rate in enumerate(rates)])
    events = Arrivals((at_s * 1e6).astype(np.int64), np.resize(np.arange(10, dtype=np.int32), len(at_s)))
    limited = ServiceSettings(shared_limits=(200.0, 1e6), shared_limit_s=30.0)
    workload = Workload.whole(events, partitions=10, duration_s=60.0)
    run = simulate(workload, make_policy("tail-aware"), SimulationSettings(service=limited))
    assert replica_minutes(run.requested, 45_000_000, 15) == pytest.approx(2 * 15 / 60)
