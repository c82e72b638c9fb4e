"""What each event waited for, and when it would have been done had that not been.

A replica serves one event at a time, so the events of a replica form a queue, and so do those of a partition. With
aᵢ the time from which event i could be served and sᵢ what its service takes, it is done at
Dᵢ = Sᵢ + max over j ≤ i of (aⱼ − Sⱼ₋₁), Sᵢ = s₁ + … + sᵢ (Lindley's recursion, unrolled). Put other aⱼ or sⱼ into it
and it says when the event would have been done. The first event of a stretch keeps its own time.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

from bench.latency_job.pace import Usual

SLOW: Final = 3
"""Times the usual service; what takes longer counts as slow."""


def queued(rows: DataFrame, usual: Usual) -> DataFrame:
    """Return `rows` with what the rules of attribution ask for.

    rows: done events with stretch, partition, replica and old, left_us, came_us of the partition's last change of
    hands. usual: what is not too long. Added, all in µs:
    handed_us   accepted by Order, in payment-only runs placed
    start_us    service began: received and the replica's event before it done
    service_us  from there until done
    unstalled_us, unpaused_us, unslowed_us
                when it would have been done had its replica never been idle while it was there to be served; had its
                partition changed hands in no time; had no service been slow
    since_us    its replica has had something to do ever since
    idle_us     of this, idle although something was there to be served
    """
    order = ("done_us", "partition", "offset", "intended_us")
    replica = Window.partitionBy("stretch", "replica").orderBy(*order)
    partition = Window.partitionBy("stretch", "partition").orderBy(*order)
    return _of_partition(_of_replica(_with_steps(rows, usual.transit_us), replica, usual.service_us), partition)


def _with_steps(rows: DataFrame, transit_us: int) -> DataFrame:
    """Add when each event was handed on, could have been served at its owner (here_us), and was received (ready_us)."""
    handed = f.least(f.coalesce("accepted_us", "placed_us", "intended_us"), "done_us")
    moved = f.col("handed_us") < f.col("came_us")
    here = f.when(moved, f.col("came_us")).otherwise(f.col("handed_us")) + transit_us
    return (
        rows.withColumn("handed_us", handed)
        .withColumn("ready_us", f.least(f.coalesce("received_us", "handed_us"), "done_us"))
        .withColumn("here_us", f.least(here, "ready_us"))
    )


def _of_replica(rows: DataFrame, order: WindowSpec, usual_us: int) -> DataFrame:
    """Add what the queue of a replica says. Columns that ask for one window stand together: Spark then passes once."""
    served = (
        rows.withColumn("before_us", f.lag("done_us").over(order))
        .withColumn("start_us", f.least(f.greatest("ready_us", f.coalesce("before_us", "ready_us")), "done_us"))
        .withColumn("service_us", f.col("done_us") - f.col("start_us"))
        .withColumn("first", f.col("before_us").isNull())
    )
    slow = (f.col("service_us") > SLOW * usual_us) if usual_us else f.lit(False)
    waited_for = f.col("start_us") > f.coalesce("before_us", f.col("start_us") - 1)
    queue = (
        served.withColumn("kept_us", f.when(slow, f.lit(usual_us)).otherwise(f.col("service_us")))
        .withColumn("could_us", f.when(f.col("first"), f.col("start_us")).otherwise(f.col("here_us")))
        .withColumn("did_us", f.when(waited_for, f.col("start_us")).otherwise(f.col("could_us")))
        .withColumn("fresh", f.col("first") | (f.col("here_us") >= f.col("before_us")))
        .withColumn("stood_us", f.when(f.col("first"), 0).otherwise(_stood()))
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
            "slack_us": f.max(_slack("could_us", "work_us", "service_us")).over(upto),
            "kept_slack_us": f.max(_slack("did_us", "kept_work_us", "kept_us")).over(upto),
            "stood_at_us": f.max(f.when(f.col("fresh"), stood_before)).over(upto),
        }
    )
    return latest.select(
        *rows.columns,
        "start_us",
        "service_us",
        (f.col("work_us") + f.col("slack_us")).alias("unstalled_us"),
        (f.col("kept_work_us") + f.col("kept_slack_us")).alias("unslowed_us"),
        "since_us",
        (f.col("stood_upto_us") - f.col("stood_at_us")).alias("idle_us"),
    )


def _stood() -> Column:
    """Return how long the replica was idle although this event was there to be served."""
    return f.greatest(f.col("start_us") - f.greatest("before_us", "here_us"), f.lit(0))


def _of_partition(rows: DataFrame, order: WindowSpec) -> DataFrame:
    """Add `unpaused_us`: as for a replica, with the partition as the server, and the time of others in its service."""
    moved = f.col("handed_us") < f.col("came_us")
    ready = f.when(moved, f.least("came_us", "done_us")).otherwise(f.col("handed_us"))
    queue = (
        rows.withColumn("ahead_us", f.lag("done_us").over(order))
        .withColumn("took_us", f.col("done_us") - f.least(f.greatest(ready, f.coalesce("ahead_us", ready)), "done_us"))
        .withColumn("sooner_us", f.when(moved, f.greatest("handed_us", "left_us")).otherwise(f.col("handed_us")))
    )
    upto = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    slack = f.max(_slack("sooner_us", "work_us", "took_us")).over(upto)
    return (
        queue.withColumn("work_us", f.sum("took_us").over(upto))
        .withColumn("slack_us", slack)
        .withColumn("unpaused_us", f.col("work_us") + f.col("slack_us"))
        .drop("took_us", "sooner_us", "work_us", "slack_us")
    )


def _slack(available: str, work: str, service: str) -> Column:
    """Return aⱼ − Sⱼ₋₁: columns of a, of the running sum, and of the service."""
    return f.col(available) - f.col(work) + f.col(service)
