"""The best packer for few partitions, against what can be counted by hand, and as a bound for all others."""

import numpy as np
import pytest

from autoscaler.packing.keep_in_place import KeepInPlace
from studies.packing import courses
from studies.packing.contestants import KEEP_IN_PLACE, Contestant
from studies.packing.optimal import Small, optimum, rscores
from studies.packing.optimum_study import SmallWalk, beside_the_optimum

CONSUMER_RATE = 0.4


def test_groupings_are_the_ways_to_share_consumers() -> None:
    assert [len(Small(partitions, 50).groupings) for partitions in (1, 2, 3, 4)] == [1, 2, 5, 15]


def test_one_partition_needs_one_consumer_and_never_moves() -> None:
    best = optimum(Small(1, 50), CONSUMER_RATE)
    assert best.least == pytest.approx(CONSUMER_RATE, abs=2e-3)
    assert best.reached == pytest.approx(CONSUMER_RATE, abs=2e-3)


def test_what_moves_is_the_least_over_all_names() -> None:
    small = Small(3, 50)
    together, apart = small.groupings.index((0, 0, 0)), small.groupings.index((0, 1, 1))
    loads = np.array([[50, 0, 50], [50, 0, 50], [50, 0, 50]])
    moved = rscores(small, np.array([together, apart, apart]), loads)
    assert moved.tolist() == [0, 0.5, 0], "either half may keep the consumer"


@pytest.mark.parametrize("price", [0.2, 0.5])
def test_no_packer_has_a_smaller_cost_than_the_best_one(price: float) -> None:
    small = Small(3, 20)
    best, stream = optimum(small, CONSUMER_RATE), small.walk(20_000, 1)
    packed = courses.pack_all(Contestant(KEEP_IN_PLACE, KeepInPlace(consumer_price=price)), stream)
    cost = courses.rscore(packed, stream.loads).mean() + CONSUMER_RATE * courses.consumers(packed).mean()
    course = best.course(stream)
    own = rscores(small, course, stream.loads).mean()
    own += CONSUMER_RATE * np.mean([1 + max(small.groupings[at]) for at in course])
    assert own == pytest.approx(best.reached, rel=0.04), "one stream of 20,000, in which each load lasts for a while"
    assert own <= cost


def test_a_row_says_how_far_the_others_are_from_it() -> None:
    row = beside_the_optimum(SmallWalk(3, 20, CONSUMER_RATE, seed=1, iterations=2_000))
    assert row.least_cost <= row.reached_cost
    assert row.rscore <= row.keep_in_place_rscore < row.mwf_rscore
