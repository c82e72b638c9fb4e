"""Scale-ups without effect are noticed, as a timeline; and what a backlog is."""

import dataclasses

from unit.autoscaler.builders import Wants, seen

from autoscaler.model import Replica
from autoscaler.policies.guards.no_help import NoticeNoHelp, backlog


def test_backlog_is_what_takes_longer_than_the_target():
    assert backlog(seen([10, 10], [100, 0], replicas=2), 0.5) == ""
    assert backlog(seen([10, 10], [101, 0], replicas=2), 0.4) == "payment-0 holds 101 events, 0.5 s of work"
    assert backlog(seen([10, 10], [150, 150], replicas=1), 0.5) == "payment-0 holds 300 events, 1.5 s of work"


def test_backlog_is_measured_by_the_speed_of_its_own_replica():
    slow = dataclasses.replace(seen([10], [60]), replicas=(Replica("payment-0", True, service_rate=50.0),))

    assert backlog(slow, 0.5) == "payment-0 holds 60 events, 1.2 s of work"


def told(guard, at_s, wanted, *, lag, replicas, hot=300.0, not_ready=()):
    """Decide at `at_s`: partition 0 gets `hot` events/s, of which its owner serves 200; the other three get 10 each."""
    guard.policy = Wants(wanted)
    rates, lags = [hot, 10, 10, 10], [lag, 0, 0, 0]
    return guard.decide(seen(rates, lags, replicas=replicas, at_s=at_s, not_ready=not_ready)).reason


def test_a_scale_up_that_cannot_help_is_noticed():
    """Partition 0 gets more than any replica serves: its lag grows by 100 events/s, whoever else comes."""
    guard = NoticeNoHelp(Wants(1), latency_target_s=0.5, after_s=5)
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
    guard = NoticeNoHelp(Wants(1), latency_target_s=0.5, after_s=2)
    for second, count in ((0, 2), (1, 4), (2, 4), (3, 4)):
        told(guard, second, count, replicas=2 if second < 2 else 4, lag=100 * (second + 1))

    assert "did not help" in told(guard, 4, 2, replicas=4, lag=500)
    assert told(guard, 5, 2, replicas=2, lag=600) == "wants 2"


def test_a_scale_up_that_helps_is_not_mentioned():
    guard = NoticeNoHelp(Wants(1), latency_target_s=0.5, after_s=5)
    lag = 0
    for second in range(30):
        lag += 100 if second < 10 else -20
        replicas = 2 if second < 10 else 4
        assert told(guard, second, 4 if second >= 9 else 2, replicas=replicas, lag=lag) in ("wants 2", "wants 4")
