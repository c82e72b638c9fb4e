"""The drawings show what the numbers say."""

import re

import msgspec
import numpy as np
import pytest
from example_report import example

from report.page.drawing.distribution import distribution
from report.page.drawing.heat import heat_map, key, worst
from report.page.drawing.svg import NARROW_PX, WIDE_PX, curve, line, under
from report.page.drawing.timeline import timeline
from report.page.happenings import happenings, tenures
from report.page.reduction import reduce
from report.result import HeatMap


def drawn(width: int = WIDE_PX) -> str:
    return timeline(example(), happenings(example(), tenures(example().heat)), width)


def test_a_gap_interrupts_a_line() -> None:
    assert line([0, 1, 2, 3], [5, np.nan, 6, 7]) == "M0 5M2 6L3 7"


def test_entries_are_steps_and_reduced_ones_strokes_from_least_to_largest() -> None:
    x = np.array([0.0, 10.0, 20.0])
    single = reduce([1, 2], 1)
    assert curve(single, x, single.high, single.low, steps=True) == "M0 1L10 1L10 2L20 2"
    pair = reduce([1, 4, 2, 9], 2)
    assert curve(pair, x, pair.high, pair.low, steps=True) == "M5 4L5 1L15 9L15 2"


def test_an_area_stands_on_its_axis_where_nothing_is_known() -> None:
    assert under(np.array([0.0, 10.0, 20.0]), np.array([3.0, np.nan]), 50.0) == "M0 50L0 3L10 3L10 50L20 50V50Z"


def test_all_panels_share_one_time_axis() -> None:
    text = drawn()
    for words in ("Events per second", "Replicas", "What happened", "Lag, events", "Late events per second", "Latency"):
        assert words in text
    assert text.count("data-axis") == 1
    traces = set(re.findall(r'data-series="([a-z0-9]+)"', text))
    assert traces == {"arrivals", "done", "requested", "ready", "bound", "lag", "max", "p99"}


def test_each_cause_has_a_bar_in_its_second() -> None:
    bars = re.findall(r'<path d="([^"]+)" class="bar cause-([a-z-]+)"', drawn())
    assert {cause: data.count("M") for data, cause in bars} == {"replica-dead": 2, "overloaded": 1, "handover": 1}


def test_marks_stand_for_what_happened() -> None:
    marks = dict(re.findall(r'<path d="([^"]*)" class="mark mark-[a-z]+" data-marks="([a-z]+)"', drawn()))
    count = {kind: data.count("M") for data, kind in marks.items()}
    assert count["failure"] == 1
    assert count["up"] == example().scale_ups
    assert count["handover"] == len(
        {one.at_s for one in happenings(example(), tenures(example().heat)) if one.kind == "handover"}
    )


def test_nothing_is_drawn_outside() -> None:
    for width in (WIDE_PX, NARROW_PX):
        text = drawn(width)
        box = re.search(r'viewBox="0 0 (\d+) ([\d.]+)"', text)
        assert box
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", text):
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= float(box.group(2))


def test_a_cell_is_as_hot_as_its_worst_event() -> None:
    heat = HeatMap(
        cell_s=1.0, partitions=(0, 1), max_s=((0.1, 0.2, 0.5, 0.9), (1.5, 9.0, None, 0.01)), owners=(("a",) * 4,) * 2
    )
    run = msgspec.structs.replace(
        example(), heat=heat, series=msgspec.structs.replace(example().series, arrivals=(1,) * 4)
    )
    text = heat_map(run, tenures(heat), WIDE_PX)
    cells = dict(re.findall(r'<path d="([^"]*)" class="cell heat-(\d)"', text))
    assert {int(level): data.count("M") for data, level in cells.items() if data} == {
        0: 2,
        1: 1,
        2: 1,
        3: 1,
        4: 1,
        5: 1,
    }
    assert [words for _, words in key(0.5)] == ["≤ 125 ms", "≤ 250 ms", "≤ 500 ms", "≤ 1.00 s", "≤ 2.50 s", "> 2.50 s"]


def test_a_long_heat_map_keeps_its_worst_cell() -> None:
    row = [0.1] * 5_000
    row[4_321] = 7.0
    cells, cell_s = worst(HeatMap(cell_s=0.5, partitions=(0,), max_s=(tuple(row),)), 300)
    assert cells.shape[1] <= 300
    assert cells.max() == 7.0
    assert int(cells.argmax()) == int(4_321 * 0.5 // cell_s)


def test_the_curve_reaches_as_many_nines_as_there_are_events() -> None:
    text = distribution(msgspec.structs.replace(example(), events=10_000_000), WIDE_PX)
    assert "99.99999 %" in text
    assert "promised: 99.9 % within 500 ms" in text
    assert "99.99999 %" not in distribution(example(), WIDE_PX)


@pytest.mark.parametrize("width", [NARROW_PX, WIDE_PX])
@pytest.mark.parametrize("slower", [0.3, 1.0, 1.6, 30.0])
def test_the_promise_is_told_where_the_curve_does_not_pass(width: int, slower: float) -> None:
    of = example().distribution
    stretched = msgspec.structs.replace(of, latency_s=tuple(latency_s * slower for latency_s in of.latency_s))
    text = distribution(msgspec.structs.replace(example(), distribution=stretched), width)
    x, y, anchor = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="tick target" text-anchor="(\w+)"', text)[0]
    curve_data = re.findall(r'<path d="([^"]+)" class="line a thick"', text)[0]
    points = [(float(at), float(to)) for at, to in re.findall(r"[ML]([\d.]+) ([\d.]+)", curve_data)]
    long = (6 if width == WIDE_PX else 5.5) * len("promised: 99.9 % within 500 ms")
    left = float(x) - (long if anchor == "end" else 0)
    inside = [at for at, to in points if float(y) - 12 < to < float(y) and left < at < left + long]
    assert 0 < left < left + long <= width
    assert not inside


def test_replicas_are_counted_in_whole_ones() -> None:
    labels = re.findall(r">([\d.]+)</text>", drawn().split("Replicas")[0].split("Events per second")[1])
    assert labels
    assert all(float(label).is_integer() for label in labels)
