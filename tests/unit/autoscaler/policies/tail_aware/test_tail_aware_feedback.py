"""Late events are booked from reports, and by a replay for each replica without a report."""

import numpy as np
import pytest

from autoscaler.model import GroupObservation, PartitionLoad, RecentArrivals, Replica
from autoscaler.policies.settings import PolicySettings
from autoscaler.policies.tail_aware.policy import TailAware

NAMES = ("payment-0", "payment-1", "payment-2")
CALM, CROWDED = 60, 160
"""Events of one burst; a replica that serves 200/s within 0.5 s has 60 of the latter late."""


def seen(at_s: float, *events: int, late: tuple[int | None, ...] = (0, 0, 0), lag: int = 0) -> GroupObservation:
    """Each replica owns one partition, which got a burst of so many events in the interval's second slot."""
    counts = np.zeros((10, 3), np.int64)
    counts[1] = events
    return GroupObservation(
        at_s=at_s,
        partitions=tuple(PartitionLoad(one, float(counts[1, one]), lag) for one in range(3)),
        replicas=tuple(Replica(name, True, late=each) for name, each in zip(NAMES, late, strict=True)),
        assignment=dict(enumerate(NAMES)),
        service_rate=200.0,
        rebalance_time_s=0.05,
        recent=RecentArrivals(0.1, counts),
    )


@pytest.fixture
def policy() -> TailAware:
    """It has seen calm seconds in which all reported; nothing was late."""
    calm = TailAware(PolicySettings())
    for second in range(5):
        assert calm.decide(seen(second, CALM, CALM, CALM)).plan.count == 3
        assert calm.late == 0
    return calm


def test_late_events_are_booked_from_reports_and_for_a_silent_replica_by_replay(policy: TailAware) -> None:
    policy.decide(seen(5, CROWDED, CALM, CROWDED, late=(7, 2, None)))
    assert policy.late == pytest.approx(7 + 2 + 60)


def test_replayed_late_events_are_not_booked_again_when_reported(policy: TailAware) -> None:
    policy.decide(seen(5, CROWDED, CALM, CALM, late=(None, 0, 0)))
    assert policy.late == pytest.approx(60)
    policy.decide(seen(6, CALM, CALM, CALM, late=(None, 0, 0)))
    policy.decide(seen(7, CALM, CALM, CALM, late=(64, 0, 0)))
    assert policy.late == pytest.approx(4)
    policy.decide(seen(8, CALM, CALM, CALM, late=(5, 0, 0)))
    assert policy.late == 5
