"""Late events with what the queues say that they stood in: of the replica that served them, and of their partition.

A replica serves one event at a time, so the events of a replica form a queue, and so do those of a partition. With
aᵢ the time from which event i could be served and sᵢ what its service takes, it is done at
Dᵢ = Sᵢ + max over j ≤ i of (aⱼ − Sⱼ₋₁), Sᵢ = s₁ + … + sᵢ (Lindley's recursion, unrolled). Put other aⱼ or sⱼ into it
and it says when the event would have been done.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from report.spark.terms import Terms, Usual, handed, ready

SLOW: Final = 3
"""Times the usual service; what takes longer counts as slow."""
ORDER: Final = ("done_us", "partition", "offset", "intended_us")
"""In which a server is taken to have done its events: no two differ in none."""
SERVER: Final = ("of_replica", "of_partition")
"""Whose queue it is: a replica's, or a partition's; the other is null."""
KEYS: Final = ("partition", "replica", "epoch", "second")
"""Of `seconds.served`, and so of the stays."""
WINDOW_S: Final = 10
"""Seconds over which a replica's load is averaged: a burst is shorter."""


def waited(done: DataFrame, stays: DataFrame, terms: Terms, usual: Usual) -> DataFrame:
    """Return the late ones of `done` with what the queues of their replicas and of their partitions say.

    stays: of `takeovers.stays`.
    """
    rows = with_stays(done.withColumn("second", terms.second("done_us")), stays)
    return with_unpaused(queued(turns(rows, usual, terms.late()), usual.service_us))


def with_stays(rows: DataFrame, stays: DataFrame) -> DataFrame:
    """Add old, left_us, came_us: how the event's partition had come to its replica; null where it always was there."""
    known = stays.where("left_us is not null")
    changes = known.select(*[f.col(name).alias(f"of_{name}") for name in KEYS], "old", "left_us", "came_us")
    same = [f.col(name).eqNullSafe(f.col(f"of_{name}")) for name in KEYS]
    return rows.join(f.broadcast(changes), same, "left").drop(*[f"of_{name}" for name in KEYS])


def turns(events: DataFrame, usual: Usual, late: Column) -> DataFrame:
    """Return `SERVER`, `ORDER`, ready_us, here_us, late: each event as its replica met it, and as its partition did.

    events: done ones with old, left_us, came_us of the partition's last change of hands.
    ready_us: when it could really be served; here_us: when it could have been. For a replica, received, and handed on
    and `usual` on its way; for a partition, which is a server that others keep waiting, at its new owner, and there had
    it changed hands in no time. late: everything known of a `late` event, null of the others.
    """
    handed_us = handed()
    moved = handed_us < f.col("came_us")
    there = f.when(moved, f.least("came_us", "done_us")).otherwise(handed_us)
    sooner = f.when(moved, f.greatest(handed_us, "left_us")).otherwise(handed_us)
    here = f.when(moved, f.col("came_us")).otherwise(handed_us) + usual.transit_us
    nobody = f.lit(None)
    known = f.struct(*events.columns, handed_us.alias("handed_us"))
    both = f.array(
        _turn(f.col("replica"), nobody.cast("int"), ready(), f.least(here, ready())),
        _turn(nobody.cast("string"), f.col("partition"), there, f.least(sooner, there)),
    )
    return events.select(*ORDER, f.when(late, known).alias("late"), f.inline(both))


def _turn(replica: Column, partition: Column, ready_us: Column, here_us: Column) -> Column:
    columns = {"of_replica": replica, "of_partition": partition, "ready_us": ready_us, "here_us": here_us}
    return f.struct(*[column.alias(name) for name, column in columns.items()])


def queued(rows: DataFrame, usual_us: int) -> DataFrame:
    """Return the late ones of `rows` (of `turns`) with what the queues say that they stood in.

    usual_us: what a service takes that is not slow; 0: unknown. Added to what is known of the event, all in µs:
    start_us    service began: ready and the server's event before it done
    service_us  from there until done
    unstalled_us, unslowed_us
                when it would have been done had its server never been idle while it was there to be served; had no
                service been slow
    since_us    its server has had something to do ever since
    idle_us     of this, idle although something was there to be served

    Columns that ask for one window stand together: Spark then passes once.
    """
    order = Window.partitionBy(*SERVER).orderBy(*ORDER)
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
        *ORDER,
        "of_partition",
        "late",
        "start_us",
        "service_us",
        (f.col("work_us") + f.col("slack_us")).alias("unstalled_us"),
        (f.col("kept_work_us") + f.col("kept_slack_us")).alias("unslowed_us"),
        "since_us",
        (f.col("stood_upto_us") - f.col("stood_at_us")).alias("idle_us"),
    )


def with_unpaused(rows: DataFrame) -> DataFrame:
    """Return the replicas' rows of `queued` with unpaused_us, and `late` as columns.

    That is when the event would have been done, had its partition changed hands in no time: what the queue of the
    partition says.
    """
    said = f.when(f.col("of_partition").isNotNull(), f.col("unstalled_us"))
    paired = rows.withColumn("unpaused_us", f.max(said).over(Window.partitionBy(*ORDER)))
    figures = [name for name in paired.columns if name not in {*ORDER, "of_partition", "late"}]
    return paired.where("of_partition is null").select("late.*", *figures)


def _slack(available: str, work: str, service: str) -> Column:
    """Return aⱼ − Sⱼ₋₁: columns of a, of the running sum, and of the service."""
    return f.col(available) - f.col(work) + f.col(service)


def owner_loads(arrived: DataFrame, usual_us: int) -> DataFrame:
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
