"""Which seconds a standstill of the group is looked for in: those in which late events waited, and some before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from report.spark.busy import EARLIEST_S
from report.spark.literal import rows_of
from report.spark.terms import SECOND_US, Terms

BEFORE_S: Final = 3
"""Seconds before the first late event that are looked at too; the target's double where that is longer."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Whole seconds of the run, both ends included."""

    first: int
    last: int


def stretches(late_seconds: Iterable[tuple[int, int]], terms: Terms) -> list[Stretch]:
    """Return disjoint stretches. late_seconds: second in which late events were done, since when they waited (µs)."""
    back_s = max(BEFORE_S, -(-2 * terms.target_us // SECOND_US))
    latest = max(terms.shown_s, 0)
    spans = sorted(
        (max((from_us - terms.started_us) // SECOND_US - back_s, EARLIEST_S), second)
        for second, from_us in late_seconds
        if EARLIEST_S <= second <= latest
    )
    found: list[Stretch] = []
    for first, last in spans:
        if found and first <= found[-1].last + 1:
            found[-1] = Stretch(found[-1].first, max(found[-1].last, last))
        else:
            found.append(Stretch(first, last))
    return found


def within(events: DataFrame, terms: Terms, found: Sequence[Stretch]) -> DataFrame:
    """Return the events that were done in the stretches."""
    rows = [(one.first, one.last) for one in found]
    table = rows_of(events.sparkSession, rows, "first long, last long")
    seconds = table.select(f.explode(f.sequence("first", "last")).alias("second"))
    return events.withColumn("second", terms.second("done_us")).join(f.broadcast(seconds), "second")
