"""Rscore, CBS and forced evictions, on streams so small that a hand can follow."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.packing import courses
from studies.packing.contestants import Contestant
from studies.packing.streams import Stream

LOADS = np.array([[50, 30, 20, 0], [60, 50, 20, 0], [60, 50, 40, 10]])
STREAM = Stream(LOADS, (3, 2, 1, 0), np.array([[0, 1, 2, 3], [1, 0, 2, 3], [2, 0, 1, 3]]))
COURSE = np.array([[0, 0, 0, 0], [0, 7, 0, 0], [0, 7, 7, 2]])
"""At first 0 holds all; then it has 130 and gives 50 away; then 20, now 40, follow, and what had no load gets 10."""


class Recorder:
    """A packer that gives every partition to the consumer of its position, and remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[dict[int, float], dict[int, int], list[int]]] = []

    def __call__(
        self,
        loads: Mapping[int, float],
        owners: Mapping[int, int],
        capacity: float,
        *,
        order: Sequence[int] | None = None,
    ) -> dict[int, int]:
        assert capacity == 100
        assert order is not None
        self.told.append((dict(loads), dict(owners), list(order)))
        return {partition: place for place, partition in enumerate(order)}


def test_each_packing_starts_from_the_owners_before() -> None:
    recorder = Recorder()
    course = courses.pack_all(Contestant("mwf", recorder), STREAM)
    assert course.tolist() == [[3, 2, 1, 0]] * 3
    assert [loads for loads, _, _ in recorder.told] == [dict(enumerate(row)) for row in LOADS.tolist()]
    assert [owners for _, owners, _ in recorder.told] == [{}, *[{3: 0, 2: 1, 1: 2, 0: 3}] * 2]
    assert [order for _, _, order in recorder.told] == [[3, 2, 1, 0]] * 3


def test_the_online_algorithms_see_a_fresh_order_each_time() -> None:
    recorder = Recorder()
    courses.pack_all(Contestant("nf", recorder), STREAM)
    assert [order for _, _, order in recorder.told] == STREAM.fresh_orders.tolist()


def test_a_packer_that_forgets_a_partition_is_found_out() -> None:
    def forgetful(
        loads: Mapping[int, float],
        owners: Mapping[int, int],
        capacity: float,
        *,
        order: Sequence[int] | None = None,
    ) -> dict[int, int]:
        return dict.fromkeys(list(loads)[1:], 0)

    with pytest.raises(ValueError, match="lost placed 3 of 4 partitions"):
        courses.pack_all(Contestant("lost", forgetful), STREAM)


def test_rscore_is_the_new_load_of_whoever_moved_in_capacities() -> None:
    assert courses.rscore(COURSE, LOADS).tolist() == [0.0, 0.5, 0.5], "then 50, then 40 and 10"
    assert courses.moved(COURSE).tolist() == [0, 1, 2]
    assert courses.consumers(COURSE).tolist() == [1, 2, 3]


def test_moving_what_has_no_load_is_a_move_at_no_rscore() -> None:
    course = np.array([[0, 0, 0, 0], [0, 0, 0, 5]])
    assert courses.rscore(course, LOADS[:2]).tolist() == [0.0, 0.0]
    assert courses.moved(course).tolist() == [0, 1]


def test_cbs_is_the_mean_share_above_the_least_of_each_iteration() -> None:
    assert courses.cbs(np.array([3, 4, 6]), np.array([2, 4, 5])) == pytest.approx((1 / 2 + 0 + 1 / 5) / 3)


def test_what_overflow_forces_is_the_least_that_makes_room() -> None:
    forced = courses.forced_rscore(COURSE, LOADS)
    assert forced.tolist() == [0.0, 0.5, 0.1], "of 60 + 50 + 20 the 50 must go; of 60 + 40 + 10 the 10 would be enough"


@given(st.lists(st.integers(0, 100), min_size=1, max_size=9))
def test_the_least_eviction_is_what_trying_every_subset_finds(sizes: list[int]) -> None:
    kept = max(
        total for count in range(len(sizes) + 1) for one in combinations(sizes, count) if (total := sum(one)) <= 100
    )
    assert courses.least_eviction(sizes) == sum(sizes) - kept
