"""From files of trip records to a trace."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bench.taxi.counting import DROPPED, OUTSIDE, counted, tallied
from bench.taxi.months import without_gap
from bench.taxi.outcome import Dropped, Outcome
from bench.taxi.reading import cause, kind_of, open_table, records
from bench.taxi.request import Request, Window, window_of
from bench.taxi.sources import Source, small, sources_of
from bench.taxi.trace_file import check_place, write_trace
from loadgen.trace import MOST_EVENTS
from report.spark import ReportError
from report.spark.session import LOG_FILE, open_session


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """What Spark counted."""

    events: npt.NDArray[np.int64]
    """Shape (seconds, partitions)."""
    outside: int
    dropped: Dropped


def build(paths: Sequence[str], out: Path, request: Request, master: str) -> Outcome:
    """Read trip records, write the trace to `out`, and return what became of the rows.

    Raises ReportError, and InvalidSettingsError for a trace that cannot be.
    """
    sources = sources_of(paths, request.month)
    try:
        first, last = without_gap([source.month for source in sources])
    except ValueError as gap:
        raise ReportError(str(gap)) from gap
    window = window_of(request, first, last)
    check_place(out)
    with tempfile.TemporaryDirectory() as folder:
        spark = open_session(master, (), Path(folder) / LOG_FILE, short=small(sources))
        try:
            counts = count(spark, sources, request, window)
        except (PySparkException, Py4JError) as failed:
            raise ReportError(f"Spark could not read the trip records ({cause(failed)})") from failed
    outcome = outcome_of(counts, events_of_trip=2 if request.ends == "both" else 1)
    if outcome.events == 0:
        raise ReportError(_nothing(outcome, sources))
    if (most := int(counts.events.max())) > MOST_EVENTS:
        raise ReportError(
            f"a second of the trace would have {most:,} events, {MOST_EVENTS:,} are allowed; lower --speed"
        )
    write_trace(out, counts.events)
    return outcome


def count(spark: SparkSession, sources: Sequence[Source], request: Request, window: Window) -> Counts:
    """Count events and dirt of all files. Raises ReportError."""
    tables = [open_table(spark, source) for source in sources]
    kind = kind_of(tables) if request.by == "zone" else None
    tallies = [tallied(records(table), request, window, table.source.month, kind) for table in tables]
    months = len({source.month for source in sources})
    return _table(counted(tallies, request, months).toArrow(), window)


def _table(found: Any, window: Window) -> Counts:
    """Sort what was counted: dirt by rule, events into the cells of the trace."""
    tally, n = (found.column(name).to_numpy() for name in ("tally", "n"))
    cells = np.zeros(window.cells, dtype=np.int64)
    inside = tally >= 0
    cells[tally[inside]] = n[inside]
    other = dict(zip(tally[~inside].tolist(), n[~inside].tolist(), strict=True))
    return Counts(
        events=cells.reshape(window.duration_s, window.partitions),
        outside=other.get(OUTSIDE, 0),
        dropped=Dropped(**{rule: other.get(tally, 0) for rule, tally in DROPPED.items()}),
    )


def outcome_of(counts: Counts, events_of_trip: int) -> Outcome:
    """Return the figures of what was counted."""
    events = int(counts.events.sum())
    trips = (events + counts.outside) // events_of_trip
    return Outcome(
        rows=trips + counts.dropped.rows,
        trips=trips,
        dropped=counts.dropped,
        events=events,
        outside=counts.outside,
        duration_s=counts.events.shape[0],
        partitions=counts.events.shape[1],
        largest=int(counts.events.sum(axis=1).max()),
        hottest_share=float(counts.events.sum(axis=0).max() / events) if events else 0.0,
    )


def _nothing(outcome: Outcome, sources: Sequence[Source]) -> str:
    if outcome.rows == 0:
        return (
            f"{sources[0].path}{' and the other files' * (len(sources) > 1)}: there is no record, so there is no trace"
        )
    why = [f"{count:,} {rule}" for rule in DROPPED if (count := getattr(outcome.dropped, rule))]
    if outcome.outside:
        why.append(f"{outcome.outside:,} events after the end of the trace")
    return f"none of {outcome.rows:,} records makes an event: {', '.join(why)}"
