"""The pictures say what their captions say."""

import numpy as np

from studies.model.burst import EVENTS, LATENCY_TARGET_S, Halves, draw, latencies_s


def test_a_burst_is_late_on_one_replica_and_in_time_when_half_of_it_moves():
    alone, moved = latencies_s(Halves(act=False)), latencies_s(Halves(act=True))
    assert np.count_nonzero(alone > LATENCY_TARGET_S) == EVENTS - 100
    assert np.count_nonzero(moved > LATENCY_TARGET_S) == 0


def test_the_picture_is_the_same_every_time(tmp_path):
    for name in ("one.svg", "two.svg"):
        draw(tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert "60 of 160 late" in (tmp_path / "one.svg").read_text()
