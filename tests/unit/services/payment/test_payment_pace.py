"""The server's clock: a running deadline loses nothing to timers that ring late."""

import pytest

from services.payment.replica import MAX_CATCH_UP_S, ReplicaSettings, ServerDeadlines, ServiceTimes

SERVICE_S = 0.005


def test_events_that_wait_follow_without_a_gap_however_late_the_timer_rings():
    pace, now_s = ServerDeadlines(), 10.0
    for _ in range(200):
        now_s = pace.begin(now_s, SERVICE_S, idle=now_s == 10.0) + 0.0009
    assert now_s == pytest.approx(10.0 + 200 * SERVICE_S + 0.0009), "200 events take 1 s, the last timer's delay aside"


def test_after_a_freeze_only_a_little_is_made_up():
    pace = ServerDeadlines()
    pace.begin(10.0, SERVICE_S, idle=True)
    frozen_until_s = 15.0
    served_at_once = 0
    while pace.begin(frozen_until_s, SERVICE_S, idle=False) <= frozen_until_s:
        served_at_once += 1
    assert served_at_once == pytest.approx(MAX_CATCH_UP_S / SERVICE_S, abs=1)


def test_a_replica_takes_the_time_of_its_speed_and_longer_while_it_is_slow(tmp_path):
    start = tmp_path / "start_at"
    slow = {"slow_factor": 3.0, "slow_from_s": 10.0, "slow_until_s": 20.0, "slow_replicas": (1,)}
    told = {"service_time_s": 0.004, "speeds": (1.0, 0.5), "slow_event_s": 0.7}
    first, second = (
        ServiceTimes(ReplicaSettings(replica="payment-0", replica_number=number, start_file=str(start), **slow, **told))
        for number in (2, 1)
    )
    assert [first.of(b"k", 15_000_000), second.of(b"k", 15_000_000)] == pytest.approx([0.004, 0.008]), "not begun yet"
    start.write_text("")
    assert second.of(b"k", 15_000_000) == pytest.approx(0.008), "not written to its end"
    start.write_text("1000000")
    found = [second.of(b"k", second_of_day * 1_000_000) for second_of_day in (10, 11, 20, 21)]
    assert found == pytest.approx([0.008, 0.024, 0.024, 0.008])
    assert first.of(b"k", 15_000_000) == pytest.approx(0.004), "another one"
    assert second.of(b"slow-7", 15_000_000) == 0.7
