"""The data of the charts keeps each peak, however long the run is."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from report.page.chart_data import largest


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=60), st.integers(1, 70))
def test_each_entry_holds_the_largest_value_of_its_seconds(values: list[float | None], step: int) -> None:
    found = largest(values, step)
    assert len(found) == -(-len(values) // step)
    for k, value in enumerate(found):
        known = [each for each in values[k * step : (k + 1) * step] if each is not None]
        assert np.isnan(value) if not known else value == max(known)
