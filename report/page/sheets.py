"""The tables of one run's report, for the page, for Markdown and as CSV."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from report.causes import meaning
from report.page.formats import Sheet, Value, markdown_page, of_records
from report.result import (
    STAGES,
    Breakdown,
    CauseOfLateness,
    Cost,
    DecisionMade,
    Effects,
    Failure,
    Integrity,
    LateEpisode,
    Lateness,
    Otherwise,
    Provenance,
    RebalanceLengths,
    RebalanceRound,
    Result,
    Stage,
    Tail,
    TopicRecords,
)

MINUTE_S: Final = 60
PER_SECOND: Final = ("seconds", "late-seconds", "distribution", "heat")
"""Tables that are data for a plot: a page of Markdown has the minutes instead."""
_NONE: Final = Tail(late=0, causes=(), episodes=())


def sheets(result: Result) -> list[Sheet]:
    """Return every table, most wanted first."""
    tail, of, moved, checked = result.tail or _NONE, result.breakdowns, result.rebalances, result.integrity
    series = msgspec.structs.asdict(result.series)
    known = {name: values for name, values in series.items() if len(values) == len(result.series.arrivals)}
    late = {str(cause): counts for cause, counts in tail.by_second.items()}
    skew = checked.clock_skew if checked else {}
    return [
        of_records("run", "The run", Result, [result]),
        _with_meaning(of_records("causes", "Why events were late", CauseOfLateness, tail.causes), meaning),
        of_records("episodes", "Late events, episode by episode", LateEpisode, tail.episodes),
        of_records("cost", "Cost", Cost, [result.cost]),
        of_records("otherwise", "What other policies would have come to", Otherwise, result.otherwise or ()),
        _with_meaning(
            of_records("stages", "Latency by stage", Stage, result.stages), lambda name: STAGES.get(name, "")
        ),
        of_records("partitions", "By partition", Breakdown, of.partitions),
        of_records("replicas", "By replica", Breakdown, of.replicas),
        of_records("epochs", "By plan", Breakdown, of.epochs),
        of_records("decisions", "Plans that were written", DecisionMade, result.decisions),
        of_records("failures", "Replicas that failed", Failure, result.failures),
        of_records("rebalances", "How long rebalances took", RebalanceLengths, moved.lengths if moved else ()),
        of_records("rounds", "Rebalances, one by one", RebalanceRound, moved.rounds if moved else ()),
        of_records("effects", "Effects of orders", Effects, [result.effects]),
        of_records("integrity", "What must not be", Integrity, [checked]),
        _sheet(
            "clock-skew",
            "Stages that took less than no time",
            ("stage", "events"),
            [one for one in skew.items() if one[1]],
        ),
        of_records("lateness", "How late the generator was", Lateness, [result.lateness]),
        of_records("topics", "Topics", TopicRecords, result.topics),
        _minutes(known),
        _columns("seconds", "Second by second", known),
        _columns("late-seconds", "Late events, second by second", late),
        _sheet(
            "distribution",
            "Distribution of latency",
            ("share", "latency_s"),
            zip(result.distribution.share, result.distribution.latency_s, strict=True),
        ),
        _heat(result),
        of_records("provenance", "How it was made", Provenance, [result.provenance]),
        _sheet("versions", "Versions", ("name", "version"), result.provenance.versions.items()),
    ]


def markdown_report(result: Result) -> str:
    """Return the whole report as one page of Markdown."""
    title = f"{result.scenario}, {result.policy}, seed {result.seed}"
    left_out = result.tail.episodes_left_out if result.tail else 0
    told = [result.verdict, f"{left_out:,} smaller episodes of late events are not listed." if left_out else ""]
    return markdown_page(title, told, (one for one in sheets(result) if one.name not in PER_SECOND))


def _sheet(name: str, title: str, columns: tuple[str, ...], rows: Any) -> Sheet:
    return Sheet(name, title, columns, tuple(map(tuple, rows)))


def _with_meaning(named: Sheet, mean: Any) -> Sheet:
    """Return the table with what the first column of each row means."""
    rows = tuple((*row, mean(str(row[0]))) for row in named.rows)
    return Sheet(named.name, named.title, (*named.columns, "meaning"), rows)


def _columns(name: str, title: str, series: Mapping[str, Sequence[Value]]) -> Sheet:
    """Return a row for each second; no event after the end of a series."""
    seconds = range(max(map(len, series.values()), default=0))
    rows = ((at_s, *(values[at_s] if at_s < len(values) else 0 for values in series.values())) for at_s in seconds)
    return _sheet(name, title, ("at_s", *series), rows)


def _minutes(series: dict[str, Any]) -> Sheet:
    """Return a row for each minute: sums of events, the most of everything else."""
    columns: dict[str, list[Value]] = {}
    for name, values in series.items():
        add = name in {"arrivals", "done"}
        if name != "p50_s":
            columns[name if add else f"most_{name}"] = [
                sum(part) if add else max((value for value in part if value is not None), default=None)
                for part in (values[begin : begin + MINUTE_S] for begin in range(0, len(values), MINUTE_S))
            ]
    begins = range(0, len(series["arrivals"]), MINUTE_S)
    return _sheet("minutes", "Minute by minute", ("from_s", *columns), zip(begins, *columns.values(), strict=True))


def _heat(result: Result) -> Sheet:
    """Return a row for each partition and cell of time that has an event."""
    heat = result.heat
    rows = (
        (
            (partition, cell * heat.cell_s, worst_s, heat.owners[row][cell] if heat.owners else None)
            for row, partition in enumerate(heat.partitions)
            for cell, worst_s in enumerate(heat.max_s[row])
            if worst_s is not None
        )
        if heat
        else ()
    )
    return _sheet("heat", "Worst latency by partition and time", ("partition", "from_s", "max_s", "replica"), rows)
