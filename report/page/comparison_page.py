"""A comparison for readers: one table with intervals, and the page with two charts beside it."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from report import replace_file
from report.comparison import RunComparison, ScenarioCompared
from report.page.rendering import COMPARED, render
from report.statistics import Against, Interval
from report.wording import UNKNOWN, dearer, duration, longer, minutes, points, share

COMPARISON_PAGE: Final = "comparison.html"
COLUMNS: Final = ("", "runs", "in time", "p99", "p99.9", "replica-minutes", "front")


def write_comparison(found: RunComparison, path: Path, *, title: str = "Runs compared") -> None:
    """Write the page to `path`: one file that needs nothing beside it; a reader never sees half of it."""
    told = {"title": title, "found": found, "tables": tables(found), "terms": COMPARED.items()}
    data = msgspec.json.encode(found.scenarios).decode().replace("<", "\\u003c")
    replace_file(path, render("comparison.html.jinja", script="comparison.js", data=data, **told))


def tables(found: RunComparison) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Return title, columns and rows for each scenario: means with their intervals, and what is no difference."""
    return [
        (f"{one.title}: 95 % intervals; beneath minus {one.reference}", COLUMNS, _rows(one)) for one in found.scenarios
    ]


def _rows(one: ScenarioCompared) -> list[tuple[str, ...]]:
    """Return a row for each contestant: estimates, and in a second line the differences from the reference."""
    return [
        (
            each.label,
            f"{each.runs:,}",
            _cell(share, points, each.in_sla, each.in_sla_difference),
            _cell(duration, longer, each.p99_s, each.p99_difference_s),
            _cell(duration, longer, each.p999_s, each.p999_difference_s),
            _cell(minutes, dearer, each.replica_minutes, each.replica_minutes_difference),
            "on it" if each.on_front else "",
        )
        for each in one.contestants
    ]


def _cell(
    say: Callable[[float], str], say_by: Callable[[float], str], value: Interval | None, by: Against | None
) -> str:
    """Return a mean with its interval, and beneath the difference with its own, where that is known."""
    if value is None:
        return UNKNOWN
    mean, low, high = (say(one) for one in (value.mean, value.low, value.high))
    text = mean if low == mean == high else f"{mean} ({low} to {high})"
    if by is None:
        return text
    mean, low, high = (say_by(one) for one in (by.mean, by.low, by.high))
    if by.low == by.high:
        return f"{text}\n{mean if by.mean else 'equal'}"
    return f"{text}\n{mean if by.distinguishable else 'not distinguishable'} ({low} to {high})"
