"""What every part of a report must know of the run: its terms, what an event's times are, and what is usual."""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

SECOND_US: Final = 1_000_000
NOWHERE: Final = -1
"""Partition of an event of which nobody knows where it lay."""
SAMPLED_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Terms:
    """Times are µs since the epoch, lengths µs."""

    started_us: int
    """Second 0."""
    target_us: int
    """The latency target."""
    shown_s: int = 0
    """Seconds that series cover: the workload and the drain after it."""

    @property
    def ended_us(self) -> int:
        """End of what is shown."""
        return self.started_us + self.shown_s * SECOND_US

    def second(self, column: str) -> Column:
        """Return the second of the run in which the time in `column` lies; whole numbers, before the start negative."""
        since = f"({column} - {self.started_us})"
        return f.expr(f"{since} div {SECOND_US} - if({since} % {SECOND_US} < 0, 1, 0)")

    def late(self) -> Column:
        """Return whether an event took longer than the target, or was never done."""
        return f.coalesce(latency() > self.target_us, f.lit(True))


@dataclass(frozen=True, slots=True)
class Usual:
    """Medians of the run, µs; 0 where unknown."""

    service_us: int = 0
    """From received, and the replica's event before it done, until done."""
    transit_us: int = 0
    """From handed on (accepted, in payment-only runs placed) until received."""
    sending_us: int = 0
    """From placed until accepted by Order."""


def latency() -> Column:
    """Return how long an event took, µs: from when it was intended until it was done; null: never done."""
    return f.col("done_us") - f.col("intended_us")


def accounted() -> Column:
    """Return whether an event counts: whatever was not refused does."""
    return f.col("done_us").isNotNull() | (f.col("dead_letters") == 0)


def handed() -> Column:
    """Return when an event was handed on: accepted by Order, in payment-only runs placed."""
    return f.least(f.coalesce("accepted_us", "placed_us", "intended_us"), "done_us")


def ready() -> Column:
    """Return when its owner had received an event."""
    return f.least(f.coalesce("received_us", handed()), "done_us")


def usual(events: DataFrame, terms: Terms) -> Usual:
    """Return the medians of the events done in some sixty whole seconds, spread over the run evenly.

    Where replicas receive late because they are busy (a simulated replica receives when it begins to serve) the median
    says nothing of the way: the transit is taken as a twentieth of the target at most.
    """
    every = max(1, terms.shown_s // SAMPLED_SECONDS)
    some = events.where("done_us is not null").withColumn("second", terms.second("done_us"))
    order = Window.partitionBy("replica", "second").orderBy("done_us", "partition", "offset", "intended_us")
    before = f.lag("done_us").over(order)
    served = before.isNotNull() & f.col("received_us").isNotNull() & f.col("replica").isNotNull()
    rows = some.where(f.col("second") % every == 0).select(
        (f.col("done_us") - f.when(served, f.greatest("received_us", before))).alias("service"),
        (f.col("received_us") - f.coalesce("accepted_us", "placed_us")).alias("transit"),
        (f.col("accepted_us") - f.col("placed_us")).alias("sending"),
    )
    median = "percentile_disc(0.5) within group (order by {0}) as {0}"  # so few values fit in a map
    medians = rows.selectExpr(*[median.format(name) for name in rows.columns]).collect()[0].asDict()
    known = {name: max(0, int(value)) for name, value in medians.items() if value is not None}
    return Usual(
        service_us=known.get("service", 0),
        transit_us=min(known.get("transit", 0), terms.target_us // 20),
        sending_us=known.get("sending", 0),
    )
