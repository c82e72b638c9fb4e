"""A comparison for readers: one table with intervals in every format, and the page with two charts beside it."""

from pathlib import Path
from typing import Final

import msgspec

from report import replace_file
from report.compare_runs import MEASURES
from report.comparison import (
    ComparedRun,
    Contestant,
    RunComparison,
    RunDifference,
    SameEvents,
    ScenarioCompared,
)
from report.page.rendering import COMPARED, render
from report.page.sheets import Sheet, markdown_page, of_records
from report.statistics import Against, Interval
from report.wording import UNKNOWN, duration, minutes, share

COMPARISON_PAGE: Final = "comparison.html"
TITLE: Final = "Runs compared"
NOT_DISTINGUISHABLE: Final = "not distinguishable"
COLUMNS: Final = ("", "runs", "in time", "p99", "p99.9", "replica-minutes", "front")


def write_comparison(found: RunComparison, path: Path, *, title: str = TITLE) -> None:
    """Write the page to `path`; a reader never sees half of it."""
    replace_file(path, comparison_html(found, title=title))


def comparison_html(found: RunComparison, *, title: str = TITLE) -> str:
    """Return the whole page: one file that needs nothing beside it."""
    return render(
        "comparison.html.jinja",
        script="comparison.js",
        title=title,
        found=found,
        columns=COLUMNS,
        tables=[_table(one) for one in found.scenarios],
        terms=COMPARED.items(),
        runs=[
            (run.run, f"{run.contestant}, seed {run.seed}, commit {run.commit}")
            for one in found.scenarios
            for run in one.runs
        ],
        data=msgspec.json.encode(found.scenarios).decode().replace("<", "\\u003c"),
    )


def sheets(found: RunComparison) -> list[Sheet]:
    """Return the tables for programs: every value in a column of its own."""
    return [
        _of_scenarios("contestants", "Contestants", Contestant, found),
        _of_scenarios("differences", "Differences", RunDifference, found),
        _same_events(found),
        _runs(found),
    ]


def readable(found: RunComparison) -> list[Sheet]:
    """Return the tables for people: means with their intervals, and what is no difference said so."""
    tables = [
        Sheet("contestants", f"{one.title}: 95 % intervals; beneath minus {one.reference}", COLUMNS, _table(one))
        for one in found.scenarios
    ]
    return [*tables, _same_events(found), _runs(found)]


def markdown_comparison(found: RunComparison) -> str:
    """Return the comparison as one page of Markdown."""
    made = [found.method, f"`{found.command}`" if found.command else ""]
    return markdown_page(TITLE, [found.verdict, *found.problems, *made], readable(found))


def estimate(value: Interval | None, name: str) -> str:
    """Return a mean with its interval; the mean alone where all runs said the same."""
    if value is None:
        return UNKNOWN
    say = share if name == "in_sla" else minutes if name == "replica_minutes" else duration
    mean, low, high = (say(one) for one in (value.mean, value.low, value.high))
    return mean if low == mean == high else f"{mean} ({low} to {high})"


def difference(value: Against | None, name: str) -> str:
    """Return a difference with its interval, or that there is none, or none to be seen."""
    if value is None:
        return UNKNOWN
    if value.low == value.high == 0:
        return "equal"
    mean, low, high = (MEASURES[name](one) for one in (value.mean, value.low, value.high))
    interval = f" ({low} to {high})" if value.low != value.high else ""
    return f"{mean if value.distinguishable or not interval else NOT_DISTINGUISHABLE}{interval}"


def _table(one: ScenarioCompared) -> tuple[tuple[str, ...], ...]:
    """Return a row for each contestant: estimates, and in a second line the differences from the reference."""
    against = {each.label: each for each in one.differences}
    rows = []
    for each in one.contestants:
        cells = {name: estimate(getattr(each, name), name) for name in MEASURES}
        if each.label in against:
            told = {name: difference(getattr(against[each.label], name), name) for name in MEASURES}
            cells = {name: f"{text}\n{told[name]}" if told[name] != UNKNOWN else text for name, text in cells.items()}
        rows.append((each.label, f"{each.runs:,}", *cells.values(), "on it" if each.on_front else ""))
    return tuple(rows)


def _of_scenarios(name: str, title: str, kind: type[msgspec.Struct], found: RunComparison) -> Sheet:
    named = [(one.title, each) for one in found.scenarios for each in getattr(one, name)]
    alone = of_records(name, title, kind, (each for _, each in named))
    rows = tuple((scenario, *row) for (scenario, _), row in zip(named, alone.rows, strict=True))
    return Sheet(name, title, ("scenario", *alone.columns), rows)


def _same_events(found: RunComparison) -> Sheet:
    named = [(one.title, each) for one in found.scenarios for each in one.differences if each.same_events]
    alone = of_records("same-events", "Event by event", SameEvents, (each.same_events for _, each in named))
    rows = tuple((name, each.label, *row) for (name, each), row in zip(named, alone.rows, strict=True))
    return Sheet(alone.name, alone.title, ("scenario", "label", *alone.columns), rows)


def _runs(found: RunComparison) -> Sheet:
    return of_records("runs", "Runs", ComparedRun, (run for one in found.scenarios for run in one.runs))
