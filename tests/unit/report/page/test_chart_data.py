"""However long a run is, what its page draws holds every peak; who served what since when, and what happened."""

import msgspec
import numpy as np
from example_report import example
from hypothesis import given
from hypothesis import strategies as st

from report.causes import Tail
from report.page.chart_data import (
    CELLS,
    heat,
    heat_key,
    largest,
    late_by_cause,
    tenures,
)
from report.result import HeatMap

OWNED = HeatMap(
    cell_s=2.0,
    partitions=(4, 5, 7),
    max_s=((0.1,) * 4, (0.1,) * 4, (None,) * 4),
    owners=(("a", "a", "b", "b"), (None, "a", "b", "c"), (None,) * 4),
)


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=60), st.integers(1, 70))
def test_each_entry_holds_the_largest_value_of_its_seconds(values: list[float | None], step: int) -> None:
    found = largest(values, step)
    assert len(found) == -(-len(values) // step)
    for k, value in enumerate(found):
        known = [one for one in values[k * step : (k + 1) * step] if one is not None]
        assert np.isnan(value) if not known else value == max(known)


def test_of_late_events_the_worst_second_stands_for_its_bucket_whole() -> None:
    counts = {"burst": (1, 0, 5, 0, 2), "handover": (0, 9, 5, 0, 0)}
    series = msgspec.structs.replace(example().series, arrivals=(1,) * 5)
    tail = Tail(late=22, causes=(), episodes=(), by_second=counts)
    found = late_by_cause(msgspec.structs.replace(example(), series=series, tail=tail), 2)
    assert {cause: values.tolist() for cause, values in found.items()} == {"handover": [9, 5, 0], "burst": [0, 5, 2]}
    assert list(found) == ["handover", "burst"], "the most frequent first"


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


def test_an_owner_serves_until_another_is_seen() -> None:
    assert tenures(OWNED) == {4: [(0.0, "a"), (4.0, "b")], 5: [(2.0, "a"), (4.0, "b"), (6.0, "c")], 7: []}
