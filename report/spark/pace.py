"""What a service usually takes, and how much a replica had to do."""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from report.spark.terms import Terms

SAMPLED_SECONDS: Final = 60
WINDOW_S: Final = 10
"""Seconds over which a replica's load is averaged: a burst is shorter."""


@dataclass(frozen=True, slots=True)
class Usual:
    """Medians of the run, µs; 0 where unknown."""

    service_us: int = 0
    """From received, and the replica's event before it done, until done."""
    transit_us: int = 0
    """From handed on (accepted, in payment-only runs placed) until received."""
    sending_us: int = 0
    """From placed until accepted by Order."""


def usual(events: DataFrame, terms: Terms) -> Usual:
    """Return the medians of the events done in some sixty whole seconds, spread over the run evenly.

    Where replicas receive late because they are busy (a simulated replica receives when it begins to serve) the median
    says nothing of the way: the transit is taken as a twentieth of the target at most.
    """
    every = max(1, terms.shown_s // SAMPLED_SECONDS)
    some = events.where("done_us is not null").withColumn("second", terms.second("done_us"))
    order = Window.partitionBy("replica", "second").orderBy("done_us", "partition", "offset", "intended_us")
    before = f.lag("done_us").over(order)
    rows = some.where(f.col("second") % every == 0).select(
        (f.col("done_us") - f.when(before.isNotNull(), f.greatest("received_us", before))).alias("service"),
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


def owner_loads(arrived: DataFrame, terms: Terms, usual_us: int) -> DataFrame:
    """Return replica, second, load, over_from: what its partitions got in the `WINDOW_S` seconds up to this one.

    load: events in the window, of the partitions whose events of this second it served. over_from: the second since
    which it has been more than it can serve (null: it is not). arrived: of `seconds.owned`.
    """
    last = Window.partitionBy("partition").orderBy("second").rangeBetween(1 - WINDOW_S, 0)
    each = arrived.where("owner is not null").withColumn("window", f.sum("events").over(last))
    owned = each.groupBy(f.col("owner").alias("replica"), "second").agg(f.sum("window").alias("load"))
    over = owned.withColumn("over", f.col("load") * usual_us > WINDOW_S * 1_000_000)
    by_time = Window.partitionBy("replica").orderBy("second")
    kept_on = f.coalesce(f.lag("second").over(by_time) == f.col("second") - 1, f.lit(False)) & f.lag("over").over(
        by_time
    )
    begins = over.withColumn("begins", f.when(f.col("over") & ~f.coalesce(kept_on, f.lit(False)), f.col("second")))
    since = f.max("begins").over(by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return begins.select("replica", "second", "load", f.when(f.col("over"), since).alias("over_from"))
