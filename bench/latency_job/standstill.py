"""When nobody in the group finished anything although several partitions had events waiting."""

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

LEAST_SLOT_US: Final = 20_000
"""Resolution: a slot of time counts as a standstill when it holds no completion and lies in nobody's service."""
AFTER_CHANGE_US: Final = 5_000_000
"""A standstill is the group's when a plan, or a replica's coming or going, lies in it or so shortly before."""
SEVERAL: Final = 2
LONGEST_US: Final = 600_000_000
Interval = tuple[int, int]
LOOKED_AT: Final = ("stretch", "partition", "handed_us", "ahead_us", "ready_us", "start_us", "done_us")
"""Columns of `waiting.queued` that `still_slots` asks for."""


def slot_us(usual_us: int) -> int:
    """Return the length of a slot: nobody who serves can pass one without finishing something."""
    return max(LEAST_SLOT_US, 2 * usual_us)


def still_slots(rows: DataFrame, target_us: int, usual_us: int) -> DataFrame:
    """Return slot: the slots (numbers since the epoch) in which at least two partitions waited and nothing was done.

    rows: of `waiting.queued`. A partition waits from when its next event was there, and the one before it done, until
    this event is received; waits below a tenth of the target are not looked at.
    """
    slot = slot_us(usual_us)
    rows = rows.where("stretch >= 0")
    from_us = f.greatest("handed_us", f.coalesce("ahead_us", "handed_us"))
    waits = rows.where(f.col("ready_us") - from_us >= max(target_us // 10, 2 * slot)).select(
        "partition", _slots(from_us, f.col("ready_us"), slot, inner=True).alias("slot")
    )
    busy = rows.select(_slots(f.col("start_us"), f.col("done_us"), slot, inner=False).alias("slot")).distinct()
    alone = waits.join(busy, "slot", "left_anti").groupBy("slot").agg(f.countDistinct("partition").alias("partitions"))
    return alone.where(f.col("partitions") >= SEVERAL).select("slot")


def stops(slots: Iterable[int], length_us: int, least_us: int, changes_us: Sequence[int]) -> list[Interval]:
    """Return the standstills of at least `least_us` that a change of the group explains, in order, as (from, until).

    slots: of `still_slots`. changes_us: times of plans and of replicas' comings and goings.
    """
    runs: list[list[int]] = []
    for slot in sorted(slots):
        if runs and slot == runs[-1][1] + 1:
            runs[-1][1] = slot
        else:
            runs.append([slot, slot])
    found = [(first * length_us, (last + 1) * length_us) for first, last in runs]
    return [
        (from_us, until_us)
        for from_us, until_us in found
        if until_us - from_us >= least_us and any(from_us - AFTER_CHANGE_US <= at_us < until_us for at_us in changes_us)
    ]


def _slots(from_us: Column, until_us: Column, length_us: int, *, inner: bool) -> Column:
    """Return one row for each slot that lies wholly inside (inner), or partly inside, of [from, until].

    Of what lasts longer than `LONGEST_US` only the end: a time may be absurd.
    """
    from_us = f.greatest(from_us, until_us - LONGEST_US)
    first = (from_us + length_us - 1) / length_us if inner else from_us / length_us
    last = until_us / length_us - (1 if inner else 0)
    first, last = f.floor(first), f.floor(last)
    return f.explode(f.when(last >= first, f.sequence(first, last)).otherwise(f.array().cast("array<long>")))
