"""Loads wander as the paper's do, and the same seed takes the same way."""

import numpy as np
import pytest
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


def test_every_load_and_every_step_has_the_same_chance() -> None:
    stream = random_walk(partitions=20_000, iterations=2, delta=2, seed=(1,))
    assert np.bincount(stream.loads[0], minlength=101).min() > 140, "of 198 expected"
    inner = (stream.loads[0] >= 2) & (stream.loads[0] <= 98)
    steps = np.bincount(np.diff(stream.loads, axis=0)[0][inner] + 2)
    assert steps / steps.sum() == pytest.approx([0.2] * 5, abs=0.02)


def test_the_base_order_stays_and_the_fresh_orders_are_one_for_each_iteration() -> None:
    stream = random_walk(partitions=50, iterations=4, delta=5, seed=(1,))
    everyone = list(range(50))
    assert sorted(stream.base_order) == everyone
    assert list(stream.base_order) != everyone
    assert [sorted(order) for order in stream.fresh_orders.tolist()] == [everyone] * 4
    assert len({tuple(order) for order in stream.fresh_orders.tolist()}) == 4


def test_the_same_seed_makes_the_same_stream_and_another_one_another() -> None:
    first, again, other = (random_walk(partitions=9, iterations=9, delta=5, seed=(1, seed)) for seed in (1, 1, 2))
    assert (first.loads == again.loads).all()
    assert first.base_order == again.base_order
    assert (first.fresh_orders == again.fresh_orders).all()
    assert not (first.loads == other.loads).all()
