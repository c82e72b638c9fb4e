"""A process that was paused too long does not write any more."""

import pytest

from services.common.faust_app import ProcessPausedError, Pulse


def test_a_pause_is_noticed_before_the_next_beat_and_never_forgotten() -> None:
    now_s = 100.0
    pulse = Pulse(4.0, clock=lambda: now_s)
    pulse.begin()
    now_s += 4.0
    pulse.require_no_pause()
    now_s += 4.5
    for _ in range(2):
        with pytest.raises(ProcessPausedError, match=r"paused for 4\.5 s"):
            pulse.require_no_pause()
        pulse.beat()


def test_a_slow_broker_before_the_start_is_no_pause() -> None:
    now_s = 100.0
    pulse = Pulse(4.0, clock=lambda: now_s)
    now_s += 20.0  # waiting for topics
    pulse.beat()
    pulse.begin()
    pulse.require_no_pause()
