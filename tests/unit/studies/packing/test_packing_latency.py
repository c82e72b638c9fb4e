"""The latency model, by hand: 30 s an iteration, 133 units/s at most, 5 s without service for what moves."""

import numpy as np
import pytest

from studies.packing.latency import Waits, round_robin, waits


def constant(loads: list[int], iterations: int) -> np.ndarray:
    return np.array([loads] * iterations)


def test_who_stays_below_the_service_rate_and_in_place_never_waits() -> None:
    found = waits(round_robin(2, 3, 1), constant([60, 70], 3))
    assert found.events == 2 * 30 * 130, "the first iteration gives no sample"
    assert found.share_delayed == 0
    assert found.mean_s == 0
    assert found.quantile_of_delayed_s(0.9) is None
    assert found.quantile_s(0.9) == 0


def test_above_the_service_rate_latency_grows_from_iteration_to_iteration() -> None:
    found = waits(round_robin(4, 3, 1), constant([66, 67, 66, 67], 3))  # 266 = 2 × 133
    events = 30 * 266
    assert found.events == 2 * events
    assert found.delayed_s.size == 2 * events - 1, "only the very first event finds an idle consumer"
    assert found.delayed_s.max() == pytest.approx(2 * (events - 1) / 266), "each event adds 1/133 − 1/266 s"
    assert found.delayed_s[0] == pytest.approx(1 / 266)
    assert found.mean_s == pytest.approx((events - 1) / 266, rel=1e-3)


def test_backlog_drains_with_what_the_load_leaves() -> None:
    loads = np.array([[100, 33], [100, 99], [100, 0]])  # 199 for 30 s, then 100
    found = waits(round_robin(2, 3, 1), loads)
    peak_s = (30 * 199 - 1) * (1 / 133 - 1 / 199)
    drained = peak_s / (1 / 100 - 1 / 133)
    assert drained > 30 * 100, "not done within one iteration"
    assert found.delayed_s.max() == pytest.approx(peak_s)
    assert found.delayed_s.size == 30 * 199 - 1 + 30 * 100


def test_what_moves_waits_five_seconds_and_less_until_it_has_caught_up() -> None:
    course, loads = np.array([[0, 1], [0, 0]]), constant([50, 40], 2)  # consumer 0 keeps 50, receives 40
    found = waits(course, loads)
    slope_s = 1 / 40 - 1 / (133 - 50)
    delayed = int(np.ceil(5 / slope_s))
    assert found.events == 30 * 90
    assert found.delayed_s.size == delayed
    assert found.delayed_s.max() == 5
    assert found.mean_s == pytest.approx(found.delayed_s.sum() / (30 * 90))
    assert found.quantile_of_delayed_s(0.9) == pytest.approx(4.5, abs=0.02), "evenly between 0 and 5"


def test_a_consumer_that_receives_everything_has_its_whole_rate_for_it() -> None:
    found = waits(np.array([[0], [1]]), constant([100], 2))
    assert found.delayed_s.size == int(np.ceil(5 / (1 / 100 - 1 / 133)))


def test_what_has_no_load_neither_waits_nor_slows_others() -> None:
    found = waits(np.array([[0, 1], [0, 0]]), constant([130, 0], 2))
    assert (found.events, found.delayed_s.size) == (30 * 130, 0)


def test_a_consumer_without_spare_rate_cannot_receive() -> None:
    with pytest.raises(ValueError, match="133 units/s or more cannot receive"):
        waits(np.array([[0, 0, 1], [0, 0, 0]]), constant([70, 70, 10], 2))


def test_a_quantile_of_all_events_counts_those_without_delay() -> None:
    found = Waits(np.array([1.0, 2.0, 4.0]), 5)
    assert [found.quantile_s(share) for share in (0, 0.25, 0.5, 0.75, 1)] == [0, 0, 1, 2, 4]
    assert found.quantile_s(0.9) == pytest.approx(float(np.quantile([0, 0, 1, 2, 4], 0.9)))
    assert found.quantile_s(0.4) == pytest.approx(float(np.quantile([0, 0, 1, 2, 4], 0.4)))
    assert found.share_delayed == 0.6
    assert found.mean_s == 7 / 5


def test_kd_n_deals_partitions_one_by_one_for_ever() -> None:
    assert round_robin(5, 2, 3).tolist() == [[0, 1, 2, 0, 1]] * 2
