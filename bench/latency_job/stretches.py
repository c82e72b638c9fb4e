"""Which events the causes are looked for among: those done while something late waited, and some time before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from bench.latency_job.terms import SECOND_US, Terms

BEFORE_S: Final = 3
"""Seconds before the first late event that are looked at too; the target's double where that is longer."""
EARLIEST_S: Final = -60
"""No stretch begins before; a time may be absurd."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Whole seconds of the run, both ends included, in which nobody need look further back."""

    first: int
    last: int


def stretches(late_seconds: Iterable[tuple[int, int]], terms: Terms) -> list[Stretch]:
    """Return disjoint stretches. late_seconds: second in which late events were done, first intended time (µs)."""
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


def within(events: DataFrame, terms: Terms, found: Sequence[Stretch], spark: SparkSession) -> DataFrame:
    """Return the done events of the stretches, and every late one, with `second` (of completion) and `stretch`.

    A late event that lies in none (its times are absurd) has the stretch −1.
    """
    rows = [(number, one.first, one.last) for number, one in enumerate(found)]
    table = spark.createDataFrame(rows, "stretch int, first long, last long")
    seconds = table.select("stretch", f.explode(f.sequence("first", "last")).alias("second"))
    dated = events.where("done_us is not null").withColumn("second", terms.second("done_us"))
    joined = dated.join(f.broadcast(seconds), "second", "left")
    kept = joined.where(f.col("stretch").isNotNull() | terms.late())
    return kept.withColumn("stretch", f.coalesce("stretch", f.lit(-1)))
