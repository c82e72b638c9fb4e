"""Guards that look at what happens in the group: handovers, backlogs, scale-ups without effect. Each as a timeline."""

import dataclasses

import pytest
from unit.autoscaler.builders import Wants, seen

from autoscaler.model import Action, Replica
from autoscaler.policies.guards import HoldDuringHandover, KeepWhileDraining, NoticeNoHelp
from autoscaler.policies.guards.backlog import backlog


@pytest.mark.parametrize("wanted", [Wants(3), Wants(1), Wants(2, action=Action.REASSIGN)], ids=["up", "down", "move"])
def test_nothing_while_partitions_are_handed_over(wanted):
    guard = HoldDuringHandover(wanted)

    def at(at_s, owned):
        return guard.decide(seen([1] * 4, replicas=2, owned=owned, at_s=at_s, rebalance_time_s=2))

    assert at(0, [0, 0, 0, 1]).action is not Action.HOLD, "nothing has moved"
    assert at(1, [0, 0, 1, 1]).reason.endswith("; vetoed: partitions are being handed over, 1 of 2 s"), "since 0 s"
    assert at(1.9, [0, 0, 1, 1]).action is Action.HOLD
    assert at(2, [0, 0, 1, 1]).action is not Action.HOLD
    assert at(9, [0, 1, 1, 1]).action is not Action.HOLD, "moved at 2 s or later; it may be over"


def test_a_handover_to_a_replica_that_starts_begins_when_it_is_ready():
    guard = HoldDuringHandover(Wants(1))

    def at(at_s, not_ready=()):
        return guard.decide(seen([1] * 4, replicas=2, at_s=at_s, not_ready=not_ready, rebalance_time_s=2)).action

    assert at(0, ["payment-1"]) is Action.DOWN, "waiting for the start is another guard's"
    assert at(5, ["payment-1"]) is Action.DOWN
    assert at(6) is Action.HOLD
    assert at(7) is Action.DOWN, "ready at 5 s at the earliest"


def test_partitions_without_owner_do_not_wait_for_a_handover():
    guard = HoldDuringHandover(Wants(2, action=Action.REASSIGN))

    guard.decide(seen([1] * 4, replicas=2, at_s=0, rebalance_time_s=2))
    assert guard.decide(seen([1] * 4, replicas=2, owned=[0, 0], at_s=1, rebalance_time_s=2)).action is Action.REASSIGN


def test_backlog_is_what_takes_longer_than_the_target():
    assert backlog(seen([10, 10], [100, 0], replicas=2), 0.5) == ""
    assert backlog(seen([10, 10], [101, 0], replicas=2), 0.4) == "payment-0 holds 101 events, 0.5 s of work"
    assert backlog(seen([10, 10], [150, 150], replicas=1), 0.5) == "payment-0 holds 300 events, 1.5 s of work"


def test_backlog_of_a_group_whose_owners_are_unknown():
    assert backlog(seen([10, 10], [100, 100], replicas=2, owned=[]), 0.5) == ""
    assert backlog(seen([10, 10], [400, 400], replicas=2, owned=[]), 0.5) == "the group holds 800 events, 2 s of work"


def test_backlog_is_measured_by_the_speed_of_its_own_replica():
    slow = dataclasses.replace(seen([10], [60]), replicas=(Replica("payment-0", True, service_rate=50.0),))

    assert backlog(slow, 0.5) == "payment-0 holds 60 events, 1.2 s of work"


def test_no_shrinking_while_a_backlog_is_drained():
    guard = KeepWhileDraining(Wants(1), latency_target_s=0.5)

    def at(at_s, lags):
        return guard.decide(seen([10, 10, 10], lags, replicas=3, at_s=at_s))

    busy = at(0, [0, 500, 10])
    assert busy.action is Action.HOLD
    assert busy.reason == (
        "wants 1; vetoed: no shrinking while a backlog is drained, payment-1 holds 500 events, 2.5 s of work"
    )
    assert at(2, [0, 120, 0]).action is Action.HOLD
    assert at(3, [0, 90, 0]).action is Action.DOWN
    guard.policy = Wants(4)
    assert at(4, [0, 900, 0]).action is Action.UP


def told(guard, at_s, wanted, *, lag, replicas, hot=300.0, not_ready=()):
    """Decide at `at_s`: partition 0 gets `hot` events/s, of which its owner serves 200; the other three get 10 each."""
    guard.policy = Wants(wanted)
    rates, lags = [hot, 10, 10, 10], [lag, 0, 0, 0]
    return guard.decide(seen(rates, lags, replicas=replicas, at_s=at_s, not_ready=not_ready)).reason


def test_a_scale_up_that_cannot_help_is_noticed():
    """Partition 0 gets more than any replica serves: its lag grows by 100 events/s, whoever else comes."""
    guard = NoticeNoHelp(Wants(1), latency_target_s=0.5, judge_s=5)
    for second in range(5):
        assert told(guard, second, 2, replicas=2, lag=100 * second) == "wants 2"

    assert told(guard, 5, 4, replicas=2, lag=500) == "wants 4"
    assert told(guard, 6, 4, replicas=4, lag=600, not_ready=["payment-3"]) == "wants 4"
    for second in range(7, 12):
        assert told(guard, second, 4, replicas=4, lag=100 * second) == "wants 4", "5 s after they are ready at 7 s"

    verdict = (
        "; the scale-up 2 → 4 7 s ago did not help: 230 events/s served, 230 before; lag 500 → 1200, "
        "100 % of it in partition 0"
    )
    assert told(guard, 12, 4, replicas=4, lag=1200) == "wants 4" + verdict
    assert told(guard, 13, 4, replicas=4, lag=1300) == "wants 4" + verdict
    assert told(guard, 14, 4, replicas=4, lag=50) == "wants 4", "the backlog is gone"
    assert told(guard, 15, 4, replicas=4, lag=1300) == "wants 4", "a new backlog is another matter"


def test_a_verdict_is_told_with_the_next_scaling_and_then_forgotten():
    guard = NoticeNoHelp(Wants(1), latency_target_s=0.5, judge_s=2)
    for second, count in ((0, 2), (1, 4), (2, 4), (3, 4)):
        told(guard, second, count, replicas=2 if second < 2 else 4, lag=100 * (second + 1))

    assert "did not help" in told(guard, 4, 2, replicas=4, lag=500)
    assert told(guard, 5, 2, replicas=2, lag=600) == "wants 2"


def test_a_scale_up_that_helps_is_not_mentioned():
    guard = NoticeNoHelp(Wants(1), latency_target_s=0.5, judge_s=5)
    lag = 0
    for second in range(30):
        lag += 100 if second < 10 else -20
        replicas = 2 if second < 10 else 4
        assert told(guard, second, 4 if second >= 9 else 2, replicas=replicas, lag=lag) in ("wants 2", "wants 4")


def test_a_scale_up_ahead_of_the_load_is_not_blamed_for_changing_nothing():
    guard = NoticeNoHelp(Wants(1), latency_target_s=0.5, judge_s=3)
    for second in range(12):
        reason = told(guard, second, 4, replicas=2 if second < 2 else 4, lag=10, hot=50.0)
        assert reason == "wants 4"
