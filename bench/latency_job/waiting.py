"""What each event waited for, and when it would have been done had that not been.

A replica serves one event at a time, so the events of a replica form a queue, and so do those of a partition. With
aᵢ the time from which event i could be served and sᵢ what its service takes, it is done at
Dᵢ = Sᵢ + max over j ≤ i of (aⱼ − Sⱼ₋₁), Sᵢ = s₁ + … + sᵢ (Lindley's recursion, unrolled). Put other aⱼ or sⱼ into it
and it says when the event would have been done. A queue begins where its server had nothing left to do.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

from bench.latency_job.pace import Usual

SLOW: Final = 3
"""Times the usual service; what takes longer counts as slow."""
ORDER: Final = ("done_us", "partition", "offset", "intended_us")
"""In which a server is taken to have done its events: no two differ in none."""


def handed() -> Column:
    """Return when an event was handed on: accepted by Order, in payment-only runs placed."""
    return f.least(f.coalesce("accepted_us", "placed_us", "intended_us"), "done_us")


def ready() -> Column:
    """Return when its owner had received an event."""
    return f.least(f.coalesce("received_us", handed()), "done_us")


def queued_at_replica(rows: DataFrame, usual: Usual, late: Column) -> DataFrame:
    """Return the `late` ones of `rows` with what the queues of replicas say.

    rows: done events with busy_s (of `busy`, by replica) and old, left_us, came_us of the partition's last change of
    hands. usual: what is not too long. Added, all in µs:
    handed_us   accepted by Order, in payment-only runs placed
    start_us    service began: received and the replica's event before it done
    service_us  from there until done
    unstalled_us, unslowed_us
                when it would have been done had its replica never been idle while it was there to be served; had no
                service been slow
    since_us    its replica has had something to do ever since
    idle_us     of this, idle although something was there to be served
    """
    handed_us = handed()
    moved = handed_us < f.col("came_us")
    here = f.when(moved, f.col("came_us")).otherwise(handed_us) + usual.transit_us
    known = f.struct(*rows.columns, handed_us.alias("handed_us"))
    narrow = rows.select(
        "busy_s", "replica", *ORDER, ready().alias("ready_us"), here.alias("here_us"), f.when(late, known).alias("late")
    ).withColumn("here_us", f.least("here_us", "ready_us"))
    order = Window.partitionBy("busy_s", "replica").orderBy(*ORDER)
    return _of_replica(narrow, order, usual.service_us)


def _of_replica(rows: DataFrame, order: WindowSpec, usual_us: int) -> DataFrame:
    """Add what the queue of a replica says. Columns that ask for one window stand together: Spark then passes once."""
    served = (
        rows.withColumn("before_us", f.coalesce(f.lag("done_us").over(order), "here_us"))
        .withColumn("start_us", f.least(f.greatest("ready_us", "before_us"), "done_us"))
        .withColumn("service_us", f.col("done_us") - f.col("start_us"))
    )
    slow = (f.col("service_us") > SLOW * usual_us) if usual_us else f.lit(False)
    stood = f.greatest(f.col("start_us") - f.greatest("before_us", "here_us"), f.lit(0))
    queue = served.withColumns(
        {
            "kept_us": f.when(slow, f.lit(usual_us)).otherwise(f.col("service_us")),
            "did_us": f.when(f.col("start_us") > f.col("before_us"), f.col("start_us")).otherwise(f.col("here_us")),
            "fresh": f.col("here_us") >= f.col("before_us"),
            "stood_us": stood,
        }
    )
    upto = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    sums = queue.withColumns(
        {
            "work_us": f.sum("service_us").over(upto),
            "kept_work_us": f.sum("kept_us").over(upto),
            "stood_upto_us": f.sum("stood_us").over(upto),
            "since_us": f.max(f.when(f.col("fresh"), f.col("here_us"))).over(upto),
        }
    )
    stood_before = f.col("stood_upto_us") - f.col("stood_us")
    latest = sums.withColumns(
        {
            "slack_us": f.max(_slack("here_us", "work_us", "service_us")).over(upto),
            "kept_slack_us": f.max(_slack("did_us", "kept_work_us", "kept_us")).over(upto),
            "stood_at_us": f.max(f.when(f.col("fresh"), stood_before)).over(upto),
        }
    )
    return latest.where("late is not null").select(
        "late.*",
        "start_us",
        "service_us",
        (f.col("work_us") + f.col("slack_us")).alias("unstalled_us"),
        (f.col("kept_work_us") + f.col("kept_slack_us")).alias("unslowed_us"),
        "since_us",
        (f.col("stood_upto_us") - f.col("stood_at_us")).alias("idle_us"),
    )


def queued_at_partition(rows: DataFrame, late: Column) -> DataFrame:
    """Return `ORDER` of the `late` ones of `rows`, and `unpaused_us`: when it would have been done, had its partition
    changed hands in no time, µs.

    As for a replica, with the partition as the server, and the time of others in its service. rows: as there, with
    busy_s by partition.
    """
    handed_us = handed()
    moved = handed_us < f.col("came_us")
    narrow = rows.select(
        "busy_s",
        *ORDER,
        f.when(moved, f.least("came_us", "done_us")).otherwise(handed_us).alias("there_us"),
        f.when(moved, f.greatest(handed_us, "left_us")).otherwise(handed_us).alias("sooner_us"),
        late.alias("late"),
    )
    order = Window.partitionBy("busy_s", "partition").orderBy(*ORDER)
    upto = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ahead_us = f.coalesce(f.lag("done_us").over(order), "there_us")
    queue = (
        narrow.withColumn("took_us", f.col("done_us") - f.least(f.greatest("there_us", ahead_us), "done_us"))
        .withColumn("work_us", f.sum("took_us").over(upto))
        .withColumn("slack_us", f.max(_slack("sooner_us", "work_us", "took_us")).over(upto))
    )
    found = queue.where("late").groupBy("busy_s", *ORDER)  # of two rows that are the same, one
    return found.agg(f.max(f.col("work_us") + f.col("slack_us")).alias("unpaused_us")).drop("busy_s")


def _slack(available: str, work: str, service: str) -> Column:
    """Return aⱼ − Sⱼ₋₁: columns of a, of the running sum, and of the service."""
    return f.col(available) - f.col(work) + f.col(service)
