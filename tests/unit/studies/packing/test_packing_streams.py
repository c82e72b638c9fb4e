"""Loads wander as the paper's do, and the same seed takes the same way."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from studies.packing.streams import CAPACITY, random_walk


@given(st.integers(1, 12), st.integers(2, 12), st.integers(0, 100), st.sampled_from([None, 0, 50, 100]))
def test_a_walk_takes_whole_steps_of_at_most_delta_inside_the_capacity(
    partitions: int, iterations: int, delta: int, start: int | None
) -> None:
    stream = random_walk(partitions=partitions, iterations=iterations, delta=delta, seed=(3,), start=start)
    assert stream.loads.shape == (iterations, partitions)
    assert stream.loads.min() >= 0
    assert stream.loads.max() <= CAPACITY
    assert np.abs(np.diff(stream.loads, axis=0)).max() <= delta
    if start is not None:
        assert (stream.loads[0] == start).all()


def test_the_base_order_stays_and_the_fresh_orders_are_one_for_each_iteration() -> None:
    stream = random_walk(partitions=50, iterations=4, delta=5, seed=(1,))
    everyone = list(range(50))
    assert sorted(stream.base_order) == everyone
    assert list(stream.base_order) != everyone
    assert [sorted(order) for order in stream.fresh_orders.tolist()] == [everyone] * 4
    assert len({tuple(order) for order in stream.fresh_orders.tolist()}) == 4
