"""However long a run is, what its page draws holds every peak; who served what since when, and what happened."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from report.page.chart_data import (
    CELLS,
    heat,
    heat_key,
    largest,
)
from report.result import HeatMap


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=60), st.integers(1, 70))
def test_each_entry_holds_the_largest_value_of_its_seconds(values: list[float | None], step: int) -> None:
    found = largest(values, step)
    assert len(found) == -(-len(values) // step)
    for k, value in enumerate(found):
        known = [one for one in values[k * step : (k + 1) * step] if one is not None]
        assert np.isnan(value) if not known else value == max(known)


def test_a_long_heat_map_keeps_its_worst_cell() -> None:
    row = [0.1] * 100_000
    row[4_321] = 7.0
    found = heat(HeatMap(cell_s=0.5, partitions=(0,), max_s=(tuple(row),)), 0.5)
    assert found is not None
    assert len(found["worst"][0]) <= CELLS
    assert found["worst"][0].index(7_000) == int(4_321 * 0.5 // found["cell"])
    assert heat(None, 0.5) is None
    words = [words for _, words in heat_key(0.5)]
    assert words == ["≤ 125 ms", "≤ 250 ms", "≤ 500 ms", "≤ 1.00 s", "≤ 2.50 s", "> 2.50 s"]
