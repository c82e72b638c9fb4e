"""Decisions between ticks: urgent changes come at once, nothing is learned twice, and no replica stops."""

import numpy as np
import pytest

from autoscaler.model import Action, GroupObservation, PartitionLoad, RecentArrivals, Replica
from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.policies.tail_aware.policy import TailAware
from autoscaler.ports import urgent_of
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.settings import SimulationSettings
from report.measures import in_sla_share

PARTITIONS = 4
OWNERS = dict.fromkeys(range(PARTITIONS), "payment-0")


def lay(*bursts: tuple[int, int], slots: int = 10) -> RecentArrivals:
    """Bursts of so many events, evenly over the partitions, in slots of 0.1 s."""
    counts = np.zeros((slots, PARTITIONS), np.int64)
    for slot, events in bursts:
        counts[slot] = events // PARTITIONS
    return RecentArrivals(0.1, counts)


def seen(at_s: float, recent: RecentArrivals, *, lag: int = 0) -> GroupObservation:
    rates = recent.counts.sum(axis=0) / (len(recent.counts) * 0.1)
    return GroupObservation(
        at_s=at_s,
        partitions=tuple(PartitionLoad(p, float(rates[p]), lag // PARTITIONS) for p in range(PARTITIONS)),
        replicas=(Replica("payment-0", True, late=0),),
        assignment=OWNERS,
        service_rate=200.0,
        rebalance_time_s=0.05,
        recent=recent,
    )


@pytest.fixture
def calm() -> TailAware:
    """A policy that has seen bursts of 80 events for 12 s, 0.4 s after its ticks; one replica serves them in time."""
    policy = TailAware(PolicySettings())
    for second in range(12):
        assert policy.decide(seen(second, lay((3, 80)))).action is Action.NO_CHANGE
    return policy


def test_only_unexpected_late_events_are_urgent(calm: TailAware) -> None:
    assert not calm.urgent(lay((3, 80), slots=4)), "as expected"
    assert not calm.urgent(lay((3, 96), slots=4)), "more, but in time"
    assert calm.urgent(lay((3, 160), slots=4)), "60 would be late"


def test_replicas_start_before_the_tick_which_learns_the_whole_interval(calm: TailAware) -> None:
    assert calm.urgent(lay((3, 160), slots=4))
    early = calm.decide(seen(11.4, lay((3, 160), slots=4), lag=160))
    assert early.action is Action.UP
    later = calm.decide(seen(12.0, lay(slots=6)))
    assert later.reason.startswith("160 events expected"), "those of the whole interval"


def test_no_replica_stops_between_ticks(calm: TailAware) -> None:
    idle = seen(11.4, lay(slots=4))
    assert calm.urgent(lay((3, 160), slots=4))
    two = (*idle.replicas, Replica("payment-1", True, late=0))
    early = calm.decide(GroupObservation(**{name: getattr(idle, name) for name in idle.__slots__} | {"replicas": two}))
    assert early.plan.count == 2


def test_guards_pass_urgency_and_other_policies_decide_only_at_ticks() -> None:
    assert urgent_of(make_policy("tail-aware", guards=GuardSettings(max_replicas=3))) is not None
    assert urgent_of(make_policy("algorithm-2", guards=GuardSettings(max_replicas=3))) is None


def steps() -> Run:
    """80 events a second in bursts 0.5 s after each tick, four times as many from second 15 on."""
    at_s = np.repeat(np.arange(30) + 0.6, np.where(np.arange(30) < 15, 80, 320))
    events = Arrivals((at_s * 1e6).astype(np.int64), np.arange(len(at_s), dtype=np.int32) % PARTITIONS)
    return simulate(
        Workload.whole(events, partitions=PARTITIONS, duration_s=30.0), make_policy("tail-aware"), SimulationSettings()
    )


def test_a_step_in_a_simulation_is_answered_within_a_tenth_of_a_second() -> None:
    run = steps()
    first = next(change for change in run.changes if change.at_s > 14)
    assert (first.action, first.at_s) == (Action.UP, pytest.approx(15.7))
    assert in_sla_share(run.latency_us, 0.5) > 0.99
