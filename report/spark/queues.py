"""Late events with what the queues around them say: of the replica that served them, and of their partition."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from contracts.journal import JournalEntry, ReplicaChanged
from report.spark import group_history as history
from report.spark import ownership
from report.spark.busy import busy, came, seen, with_busy
from report.spark.pace import Usual
from report.spark.seconds import FEW, served
from report.spark.takeovers import deaths
from report.spark.terms import Terms
from report.spark.waiting import queued, turns, with_unpaused

KEYS: Final = ("partition", "replica", "epoch", "second")
"""Of `seconds.served`, and so of the stays."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What is known by second."""

    cells: DataFrame
    """Of `seconds.cells`."""
    arrived: DataFrame
    """Of `seconds.owned`."""
    stays: DataFrame
    """Of `ownership`."""
    size: int
    """Rows that `stays` has at most."""


def tables(cells: DataFrame, arrived: DataFrame, journal: Sequence[JournalEntry], size: int) -> Tables:
    """Return what `tail` asks for. cells: of `seconds.cells`, size: their number; arrived: of `seconds.owned`."""
    stays = ownership.stays(served(cells), deaths(history.only(journal, ReplicaChanged)))
    return Tables(cells, arrived, stays, size)


def waited(done: DataFrame, tables: Tables, terms: Terms, usual: Usual) -> DataFrame:
    """Return the late ones of `done` with what the queues of their replicas and of their partitions say.

    In a period in which no event waited for a change of hands, a partition's would be done when it was done.
    """
    small = f.broadcast if tables.size <= FEW else lambda table: table
    seconds = {"second": terms.second("done_us"), "intended_second": terms.second("intended_us")}
    rows = done.withColumns(seconds).withColumn("came_s", came("intended_second", "second")).drop("intended_second")
    hands = small(changes_of_hands(tables.stays))

    moved = f.coalesce(f.col("first_handed_us") < f.col("came_us"), f.lit(False)).cast("int")
    cells = with_stays(tables.cells, hands).withColumn("moved", moved)
    rows = with_busy(rows, small(busy(tables.cells, "replica", terms)), "replica", terms.late())
    paused = small(busy(cells, "partition", terms, ("late", "moved")))
    rows = with_busy(rows, paused, "partition", terms.late() & ~seen(terms))
    asked = rows.where("replica_busy_s is not null or partition_busy_s is not null")
    return with_unpaused(queued(turns(with_stays(asked, hands), usual, terms.late()), usual.service_us))


def changes_of_hands(stays: DataFrame) -> DataFrame:
    """Return the rows of `stays` into which a partition was handed over: `of_` KEYS, old, left_us, came_us."""
    known = stays.where("left_us is not null")
    return known.select(*[f.col(name).alias(f"of_{name}") for name in KEYS], "old", "left_us", "came_us")


def with_stays(rows: DataFrame, changes: DataFrame) -> DataFrame:
    """Add old, left_us, came_us: how the event's partition had come to its replica."""
    same = [f.col(name).eqNullSafe(f.col(f"of_{name}")) for name in KEYS]
    return rows.join(changes, same, "left").drop(*[f"of_{name}" for name in KEYS])
