"""However long a series is, what is left of it holds every peak."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from report.page.reduction import bucket, reduce, worst_entries

VALUES = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=60)


@given(VALUES, st.integers(1, 70))
def test_each_bucket_holds_its_least_and_its_largest_value(values: list[float | None], step: int) -> None:
    reduced = reduce(values, step)
    for k, (low, high) in enumerate(zip(reduced.low, reduced.high, strict=True)):
        known = [value for value in values[k * step : (k + 1) * step] if value is not None]
        assert (np.isnan(low) and np.isnan(high)) if not known else (low, high) == (min(known), max(known))
    assert len(reduced.high) == -(-len(values) // step)


@given(st.integers(0, 10**6), st.integers(1, 2_000))
def test_a_bucket_is_just_large_enough(entries: int, limit: int) -> None:
    step = bucket(entries, limit)
    assert -(-entries // step) <= limit
    assert step == 1 or -(-entries // (step - 1)) > limit


def test_of_a_stack_the_worst_second_stands_for_its_bucket_whole() -> None:
    stack = {"burst": (1, 0, 5, 0, 2), "handover": (0, 9, 5, 0, 0)}
    assert {name: values.tolist() for name, values in worst_entries(stack, 2).items()} == {
        "burst": [0, 5, 2],
        "handover": [9, 5, 0],
    }, "9 in one second, 10 in the next bucket's worst, the last alone"
    assert worst_entries({}, 3) == {}
