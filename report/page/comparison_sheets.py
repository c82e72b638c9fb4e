"""A comparison of runs as tables, and as a page of Markdown."""

from collections.abc import Iterable
from typing import Final

from report.page.formats import Sheet, Value, markdown_page, of_records
from report.page.run_comparison import (
    ComparedRun,
    Contestant,
    RunComparison,
    RunDifference,
    SameEvents,
    ScenarioCompared,
)
from report.statistics import Against, Interval
from report.wording import duration, minutes, share

TITLE: Final = "Runs compared"
MEASURES: Final = ("in_sla", "p99_s", "p999_s", "replica_minutes")
NOT_DISTINGUISHABLE: Final = "not distinguishable"


def sheets(found: RunComparison) -> list[Sheet]:
    """Return the tables with every value in a column of its own: name, name_low, name_high."""
    return [
        Sheet(
            "contestants",
            "Contestants",
            ("scenario", "label", "policy", "world", "runs", *_spread(("", "_low", "_high")), "on_front"),
            tuple(
                (name_of(one), each.label, each.policy, each.world, each.runs, *_intervals(each), each.on_front)
                for one in found.scenarios
                for each in one.contestants
            ),
        ),
        Sheet(
            "differences",
            "Differences",
            (
                *("scenario", "label", "reference", "over", "pairs"),
                *_spread(("_difference", "_low", "_high", "_distinguishable")),
            ),
            tuple(
                (name_of(one), each.label, each.reference, each.over, each.pairs, *_differences(each))
                for one in found.scenarios
                for each in one.differences
            ),
        ),
        _same_events(found),
        of_records("runs", "Runs", ComparedRun, (run for one in found.scenarios for run in one.runs)),
    ]


def readable(found: RunComparison) -> list[Sheet]:
    """Return the tables as a reader wants them: means with their intervals, and what is no difference said so."""
    tables = []
    for one in found.scenarios:
        tables.append(
            Sheet(
                "contestants",
                f"{name_of(one)}: 95 % intervals",
                ("", "runs", "in SLA", "p99", "p99.9", "replica-minutes", "on the front"),
                tuple(
                    (
                        each.label,
                        each.runs,
                        _estimate(each.in_sla, "in_sla"),
                        _estimate(each.p99_s, "p99_s"),
                        _estimate(each.p999_s, "p999_s"),
                        _estimate(each.replica_minutes, "replica_minutes"),
                        each.on_front,
                    )
                    for each in one.contestants
                ),
            )
        )
        tables.append(
            Sheet(
                "differences",
                f"{name_of(one)}: difference from {one.reference}",
                ("", "over", "in SLA, points", "p99", "p99.9", "replica-minutes"),
                tuple(
                    (
                        each.label,
                        f"{each.pairs} {each.over}" if each.over == "seeds" else each.over,
                        _gap_text(each.in_sla, "in_sla"),
                        _gap_text(each.p99_s, "p99_s"),
                        _gap_text(each.p999_s, "p999_s"),
                        _gap_text(each.replica_minutes, "replica_minutes"),
                    )
                    for each in one.differences
                ),
            )
        )
    return [*tables, _same_events(found), of_records("runs", "Runs", ComparedRun, runs_of(found))]


def markdown_comparison(found: RunComparison) -> str:
    """Return the comparison as one page of Markdown."""
    made = [found.method, f"`{found.command}`" if found.command else ""]
    return markdown_page(TITLE, [found.verdict, *found.problems, *made], readable(found))


def _same_events(found: RunComparison) -> Sheet:
    named = [(name_of(one), each) for one in found.scenarios for each in one.differences if each.same_events]
    alone = of_records("same-events", "Event by event", SameEvents, (each.same_events for _, each in named))
    rows = tuple((name, each.label, *row) for (name, each), row in zip(named, alone.rows, strict=True))
    return Sheet(alone.name, alone.title, ("scenario", "label", *alone.columns), rows)


def name_of(one: ScenarioCompared) -> str:
    """Return the scenario with what tells it from its namesakes."""
    return ", ".join([one.scenario, *one.settings])


def runs_of(found: RunComparison) -> Iterable[ComparedRun]:
    """Return every run that takes part."""
    return (run for one in found.scenarios for run in one.runs)


def _spread(ends: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of each measure; a unit stays at the end of the name."""
    unit = {"p99_s": "_s", "p999_s": "_s"}
    return tuple(name.removesuffix("_s") + end + unit.get(name, "") for name in MEASURES for end in ends)


def _intervals(one: Contestant) -> list[Value]:
    values: list[Interval | None] = [getattr(one, name) for name in MEASURES]
    return [each for value in values for each in ((value.mean, value.low, value.high) if value else (None,) * 3)]


def _differences(one: RunDifference) -> list[Value]:
    values: list[Against | None] = [getattr(one, name) for name in MEASURES]
    return [
        each
        for value in values
        for each in ((value.mean, value.low, value.high, value.distinguishable) if value else (None,) * 4)
    ]


def _text(value: float, name: str) -> str:
    if name == "in_sla":
        return share(value)
    return duration(value) if name.endswith("_s") else minutes(value)


def _estimate(value: Interval | None, name: str) -> str:
    if value is None:
        return "–"
    mean, low, high = (_text(one, name) for one in (value.mean, value.low, value.high))
    return mean if low == mean == high else f"{mean} ({low} to {high})"


def _gap_text(value: Against | None, name: str) -> str:
    if value is None:
        return "–"
    mean, low, high = (_signed(one, name) for one in (value.mean, value.low, value.high))
    if value.low == value.high == 0:
        return "equal"
    return f"{mean} ({low} to {high})" if value.distinguishable else f"{NOT_DISTINGUISHABLE} ({low} to {high})"


def _signed(value: float, name: str) -> str:
    if name == "in_sla":
        return f"{100 * value:+.3f}".replace("-", "−")
    return ("−" if value < 0 else "+") + _text(abs(value), name)
