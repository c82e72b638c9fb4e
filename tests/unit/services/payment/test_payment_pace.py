"""A running deadline keeps the service rate exact although timers are late."""

import pytest

from services.payment.replica import MAX_CATCH_UP_S, ReplicaSettings, ServerDeadlines, ServiceTimes

SERVICE_S = 0.005


def test_waiting_events_are_served_without_a_gap_although_timers_are_late():
    deadlines, now_s = ServerDeadlines(), 10.0
    for _ in range(200):
        now_s = deadlines.begin(now_s, SERVICE_S, idle=now_s == 10.0) + 0.0009
    assert now_s == pytest.approx(10.0 + 200 * SERVICE_S + 0.0009), "200 events take 1 s, the last timer's delay aside"


def test_after_a_pause_only_the_allowed_lag_is_made_up():
    deadlines = ServerDeadlines()
    deadlines.begin(10.0, SERVICE_S, idle=True)
    paused_until_s = 15.0
    served_at_once = 0
    while deadlines.begin(paused_until_s, SERVICE_S, idle=False) <= paused_until_s:
        served_at_once += 1
    assert served_at_once == pytest.approx(MAX_CATCH_UP_S / SERVICE_S, abs=1)


def test_service_time_follows_the_replicas_speed_and_its_slow_period(tmp_path):
    start = tmp_path / "start_at"
    slow = {"slow_factor": 3.0, "slow_from_s": 10.0, "slow_until_s": 20.0, "slow_replicas": (1,)}
    common = {"service_time_s": 0.004, "speeds": (1.0, 0.5), "slow_event_s": 0.7}
    first, second = (
        ServiceTimes(
            ReplicaSettings(replica="payment-0", replica_number=number, start_file=str(start), **slow, **common)
        )
        for number in (2, 1)
    )
    assert [first.service_time_s(b"k", 15_000_000), second.service_time_s(b"k", 15_000_000)] == pytest.approx(
        [0.004, 0.008]
    ), "the run has not begun"
    start.write_text("")
    assert second.service_time_s(b"k", 15_000_000) == pytest.approx(0.008), "the file is only partly written"
    start.write_text("1000000")
    found = [second.service_time_s(b"k", second_of_day * 1_000_000) for second_of_day in (10, 11, 20, 21)]
    assert found == pytest.approx([0.008, 0.024, 0.024, 0.008])
    assert first.service_time_s(b"k", 15_000_000) == pytest.approx(0.004), "this replica is not slow"
    assert second.service_time_s(b"slow-7", 15_000_000) == 0.7
