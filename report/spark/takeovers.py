"""Who served which partition, when; and whether it was handed over or taken from the dead."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from contracts.journal import PlanWritten, ReplicaChange, ReplicaChanged

NOTICED_WITHIN_US: Final = 15_000_000
"""A death may be written down so long after a successor took over: a session ends late, a hung process is killed."""
ANYBODY: Final = ""
"""Owner that a plan names which leaves placing to the group."""
GONE: Final = frozenset({ReplicaChange.DRAINED, ReplicaChange.LEFT})


@dataclass(frozen=True, slots=True)
class Takeover:
    """One partition that another replica served from then on."""

    partition: int
    old: str
    new: str
    left_us: int
    """Last event done at the old owner."""
    came_us: int
    """First event received at the new one."""


def deaths(changes: Iterable[ReplicaChanged]) -> dict[str, list[int]]:
    """Return replica → when it died, µs, in order."""
    found: dict[str, list[int]] = {}
    for change in changes:
        if change.change is ReplicaChange.DIED:
            found.setdefault(change.replica, []).append(change.at_us)
    return {replica: sorted(times) for replica, times in found.items()}


class Deaths:
    """Tells whom a partition was taken over from: a dead replica, or one that handed it over."""

    def __init__(self, changes: Sequence[ReplicaChanged], plans: Sequence[PlanWritten]) -> None:
        self._deaths = deaths(changes)
        self._gone = {(change.replica, change.at_us) for change in changes if change.change in GONE}
        self._placed = _placements(plans)

    def by_death(self, one: Takeover) -> bool:
        """Return whether the old owner was dead, or evicted, when the partition changed hands.

        Dead: the journal says that it died between its last event there and the successor's first. Evicted: neither of
        the two newest plans names the successor, so that the group itself gave the partition away, and the old owner
        had not left in good order. Where plans place nothing, a death that was written down soon afterwards counts.
        """
        died = self._deaths.get(one.old, ())
        if any(one.left_us <= at_us <= one.came_us for at_us in died):
            return True
        times, owners = self._placed.get(one.partition, ((), ()))
        known = bisect_right(times, one.came_us)
        newest = owners[max(0, known - 2) : known]
        if not newest or ANYBODY in newest:
            return any(one.left_us <= at_us <= one.came_us + NOTICED_WITHIN_US for at_us in died)
        if one.new in newest:
            return False
        return not any(replica == one.old and at_us <= one.came_us for replica, at_us in self._gone)


def _placements(plans: Sequence[PlanWritten]) -> Mapping[int, tuple[Sequence[int], Sequence[str]]]:
    """Return partition → times of the plans that place it, or leave that to the group, and whom they name."""
    placed: dict[int, tuple[list[int], list[str]]] = {
        int(partition): ([], []) for plan in plans for partition in plan.assignment or {}
    }
    for plan in sorted(plans, key=lambda plan: plan.at_us):
        named = None if plan.assignment is None else {int(one): who for one, who in plan.assignment.items()}
        for partition, (times, owners) in placed.items():
            if named is None or partition in named:
                times.append(plan.at_us)
                owners.append(ANYBODY if named is None else named[partition])
    return placed


def stays(served: DataFrame, deaths: Mapping[str, Sequence[int]]) -> DataFrame:
    """Return the rows of `served` with the stay they belong to.

    A stay is one replica (one life of it) serving a partition without another in between. Added are old (replica
    before), left_us (its last event done), came_us (first event received in this stay); null for the first stay of a
    partition, and where two replicas served it at the same time: then nothing was handed over.
    deaths: replica → when it died, µs. Exact, unless a partition leaves and returns in one second under one epoch.
    """
    lives = served.withColumn("life", _life(deaths))
    order = Window.partitionBy("partition").orderBy("first_done_us", "last_done_us", "replica", "epoch")
    who = f.struct("replica", "life")
    changed = f.coalesce(f.lag(who).over(order) != who, f.lit(True))
    numbered = lives.withColumn("changed", changed).withColumn("stay", f.sum(f.col("changed").cast("int")).over(order))
    ends = numbered.groupBy("partition", "stay").agg(
        f.first("replica").alias("who"),
        f.min("first_done_us").alias("begin_us"),
        f.max("last_done_us").alias("end_us"),
        f.min(f.coalesce("first_received_us", "first_done_us")).alias("first_us"),
    )
    by_time = Window.partitionBy("partition").orderBy("stay")
    before = ends.select(
        "partition", "stay", "begin_us", "first_us", f.lag("who").over(by_time).alias("old"),
        f.max("end_us").over(by_time.rowsBetween(Window.unboundedPreceding, -1)).alias("left_us"),
    )  # fmt: skip
    handed_over = f.col("left_us") <= f.col("begin_us")
    known = before.select(
        "partition",
        "stay",
        f.when(handed_over, f.col("old")).alias("old"),
        f.when(handed_over, f.col("left_us")).alias("left_us"),
        f.when(handed_over, f.greatest("first_us", "left_us")).alias("came_us"),
    )
    return numbered.drop("changed").join(known, ["partition", "stay"])


def takeovers(stays: DataFrame) -> DataFrame:
    """Return partition, old, new, left_us, came_us of the handovers into stays in which events were late."""
    late = stays.where("left_us is not null").groupBy("partition", "stay")
    return late.agg(
        *[f.first(name).alias(name) for name in ("old", "left_us", "came_us")],
        f.first("replica").alias("new"),
        f.sum("late").alias("late"),
    ).where("late > 0")


def _life(deaths: Mapping[str, Sequence[int]]) -> Column:
    """Return how often the row's replica had died before: a replica that comes back by its old name is another one."""
    life = f.lit(0)
    for replica, times in deaths.items():
        died = sum(((f.col("first_done_us") > at_us).cast("int") for at_us in times), f.lit(0))
        life = f.when(f.col("replica") == replica, died).otherwise(life)
    return life
