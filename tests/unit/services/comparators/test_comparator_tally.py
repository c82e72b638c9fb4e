"""What a comparator replica tells of itself."""

import pytest

from contracts.progress import ReplicaState, ServiceTimes
from services.comparators.tally import Tally, service_times


@pytest.fixture
def tally() -> Tally:
    return Tally("payment-0")


def test_a_replica_is_warm_until_its_first_partition_and_a_member_from_then_on(tally):
    assert tally.report(0.0).state is ReplicaState.WARM
    tally.taken([])
    assert tally.report(0.0).state is ReplicaState.WARM
    tally.taken([3, 1])
    assert tally.report(0.0).state is ReplicaState.MEMBER
    tally.given_up([1, 3])
    assert tally.report(0.0).state is ReplicaState.MEMBER
    tally.stopping = True
    assert tally.report(0.0).state is ReplicaState.STOPPING


def test_partitions_come_and_go_one_by_one_and_take_their_positions_along(tally):
    tally.taken([3, 1])
    tally.served(1, 41, 0.005)
    tally.taken([2])
    tally.served(2, 7, 0.005)
    tally.given_up([1])

    report = tally.report(0.0)

    assert report.partitions == (2, 3)
    assert report.positions == {2: 8}
    assert report.processed == 2


def test_an_event_of_a_partition_nobody_owns_is_counted_without_a_position(tally):
    tally.served(5, 7, 0.005)

    assert tally.report(0.0).processed == 1
    assert tally.report(0.0).positions == {}


def test_service_times_are_those_since_the_report_before(tally):
    tally.taken([0])
    tally.served(0, 1, 0.004)
    tally.served(0, 2, 0.006)

    report = tally.report(busy_s=0.01)

    assert report.busy_us == 10_000
    assert report.service == ServiceTimes(events=2, mean_us=5000, max_us=6000)
    assert tally.report(0.0).service == ServiceTimes()


def test_no_events_have_no_times():
    assert service_times([]) == ServiceTimes()


def test_without_a_plan_both_epochs_are_zero_and_each_start_is_another_incarnation(tally):
    report = tally.report(0.0)

    assert (report.epoch, report.assigned_epoch) == (0, 0)
    assert report.incarnation != Tally("payment-0").report(0.0).incarnation
