"""A process that stood still writes nothing more."""

import pytest

from services.common.faust_app import ProcessPausedError, Pulse


def test_a_gap_is_noticed_by_whoever_looks_first_and_never_forgotten() -> None:
    now_s = 100.0
    pulse = Pulse(4.0, clock=lambda: now_s)
    now_s += 4.0
    pulse.require()
    now_s += 4.5
    for _ in range(2):
        with pytest.raises(ProcessPausedError, match=r"stood still for 4\.5 s"):
            pulse.require()
        pulse.beat()


def test_a_beat_renews_it() -> None:
    now_s = 0.0
    pulse = Pulse(4.0, clock=lambda: now_s)
    for _ in range(3):
        now_s += 3.0
        pulse.beat()
    pulse.require()
    assert pulse.gap_s == 0.0
