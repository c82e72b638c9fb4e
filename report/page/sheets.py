"""The tables of one run's report."""

from typing import Final

import msgspec

from report.causes import MEANINGS, Cause
from report.page.formats import Sheet, Value, markdown_page, of_records
from report.result import (
    STAGES,
    Breakdown,
    CauseOfLateness,
    Cost,
    DecisionMade,
    Effects,
    Failure,
    HeatMap,
    Integrity,
    LateEpisode,
    Lateness,
    Otherwise,
    Provenance,
    RebalanceLengths,
    RebalanceRound,
    Result,
    Series,
    Stage,
    TopicRecords,
)

MINUTE_S: Final = 60
MEANING: Final = "meaning"
PER_SECOND: Final = ("seconds", "late-seconds", "distribution", "heat")
"""Tables that are data for a plot: a page of Markdown has the minutes instead."""


def sheets(result: Result) -> list[Sheet]:
    """Return every table, most wanted first."""
    tail, of, moved = result.tail, result.breakdowns, result.rebalances
    return [
        of_records("run", "The run", Result, [result]),
        _with_meanings(of_records("causes", "Why events were late", CauseOfLateness, tail.causes if tail else ())),
        of_records("episodes", "Late events, episode by episode", LateEpisode, tail.episodes if tail else ()),
        of_records("cost", "Cost", Cost, [result.cost]),
        of_records("otherwise", "What other policies would have come to", Otherwise, result.otherwise or ()),
        _with_spans(of_records("stages", "Latency by stage", Stage, result.stages)),
        of_records("partitions", "By partition", Breakdown, of.partitions),
        of_records("replicas", "By replica", Breakdown, of.replicas),
        of_records("epochs", "By plan", Breakdown, of.epochs),
        of_records("decisions", "Plans that were written", DecisionMade, result.decisions),
        of_records("failures", "Replicas that failed", Failure, result.failures),
        of_records("rebalances", "How long rebalances took", RebalanceLengths, moved.lengths if moved else ()),
        of_records("rounds", "Rebalances, one by one", RebalanceRound, moved.rounds if moved else ()),
        of_records("effects", "Effects of orders", Effects, [result.effects]),
        of_records("integrity", "Integrity", Integrity, [result.integrity]),
        Sheet("clock-skew", "Stages that took less than no time", ("stage", "events"), _skew(result.integrity)),
        of_records("lateness", "How late the generator was", Lateness, [result.lateness]),
        of_records("topics", "Topics", TopicRecords, result.topics),
        _minutes(result.series),
        _seconds(result.series),
        _late_seconds(result),
        Sheet(
            "distribution",
            "Distribution of latency",
            ("share", "latency_s"),
            tuple(zip(result.distribution.share, result.distribution.latency_s, strict=True)),
        ),
        Sheet("heat", "Worst latency by partition and time", *_heat(result.heat)),
        of_records("provenance", "How it was made", Provenance, [result.provenance]),
        Sheet("versions", "Versions", ("name", "version"), tuple(result.provenance.versions.items())),
    ]


def markdown_report(result: Result) -> str:
    """Return the whole report as one page of Markdown."""
    title = f"{result.scenario}, {result.policy}, seed {result.seed}"
    left_out = result.tail.episodes_left_out if result.tail else 0
    told = [result.verdict, f"{left_out:,} smaller episodes of late events are not listed." if left_out else ""]
    return markdown_page(title, told, (one for one in sheets(result) if one.name not in PER_SECOND))


def _with_meanings(causes: Sheet) -> Sheet:
    rows = tuple((*row, MEANINGS[Cause(str(row[0]))]) for row in causes.rows)
    return Sheet(causes.name, causes.title, (*causes.columns, MEANING), rows)


def _with_spans(stages: Sheet) -> Sheet:
    rows = tuple((*row, STAGES.get(str(row[0]), "")) for row in stages.rows)
    return Sheet(stages.name, stages.title, (*stages.columns, MEANING), rows)


def _seconds(series: Series) -> Sheet:
    """Return a row for each second; series that this run does not have are left out."""
    count = len(series.arrivals)
    known = {name: values for name, values in msgspec.structs.asdict(series).items() if len(values) == count}
    rows = tuple(zip(range(count), *known.values(), strict=True))
    return Sheet("seconds", "Second by second", ("at_s", *known), rows)


def _minutes(series: Series) -> Sheet:
    """Return a row for each minute: sums of events, the most of everything else."""
    columns: dict[str, list[Value]] = {}
    for name, values in msgspec.structs.asdict(series).items():
        if name == "p50_s" or len(values) != len(series.arrivals):
            continue
        parts = [values[begin : begin + MINUTE_S] for begin in range(0, len(values), MINUTE_S)]
        add = name in {"arrivals", "done"}
        title = name if add else f"most_{name}"
        columns[title] = [
            sum(part) if add else max((value for value in part if value is not None), default=None) for part in parts
        ]
    begins = range(0, len(series.arrivals), MINUTE_S)
    rows = tuple(zip(begins, *columns.values(), strict=True))
    return Sheet("minutes", "Minute by minute", ("from_s", *columns), rows)


def _late_seconds(result: Result) -> Sheet:
    """Return late events of each cause, by the second in which they were intended."""
    causes = result.tail.by_second if result.tail else {}
    seconds = range(max(map(len, causes.values()), default=0))
    rows = tuple((k, *(late[k] if k < len(late) else 0 for late in causes.values())) for k in seconds)
    return Sheet("late-seconds", "Late events, second by second", ("at_s", *map(str, causes)), rows)


def _heat(heat: HeatMap | None) -> tuple[tuple[str, ...], tuple[tuple[Value, ...], ...]]:
    """Return columns and rows: one for each partition and cell of time that has an event."""
    columns = ("partition", "from_s", "max_s", "replica")
    if heat is None:
        return columns, ()
    rows = (
        (partition, cell * heat.cell_s, worst_s, heat.owners[row][cell] if heat.owners else None)
        for row, partition in enumerate(heat.partitions)
        for cell, worst_s in enumerate(heat.max_s[row])
        if worst_s is not None
    )
    return columns, tuple(rows)


def _skew(integrity: Integrity | None) -> tuple[tuple[Value, ...], ...]:
    return tuple((stage, events) for stage, events in integrity.clock_skew.items() if events) if integrity else ()
