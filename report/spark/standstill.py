"""When nobody in the group finished anything although several partitions had events waiting."""

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from report.spark.waiting import handed, ready

LEAST_SLOT_US: Final = 20_000
"""Resolution: a slot of time counts as a standstill when it holds no completion and lies in nobody's service."""
AFTER_CHANGE_US: Final = 5_000_000
"""A standstill is the group's when a plan, or a replica's coming or going, lies in it or so shortly before."""
SEVERAL: Final = 2
LONGEST_US: Final = 600_000_000
Interval = tuple[int, int]


def slot_us(usual_us: int) -> int:
    """Return the length of a slot: nobody who serves can pass one without finishing something."""
    return max(LEAST_SLOT_US, 2 * usual_us)


def still_slots(rows: DataFrame, target_us: int, usual_us: int) -> DataFrame:
    """Return slot: the slots (numbers since the epoch) in which at least two partitions waited and nobody served.

    rows: done events. A partition waits while one of its events has been handed on and not received; waits below a
    tenth of the target are not looked at. From then until it is done, an event is being served, or those before it are.
    """
    length = slot_us(usual_us)
    waits = ready() - handed() >= max(target_us // 10, 2 * length)
    nobody = f.lit(None).cast("int")
    spans = f.array(
        _span(nobody, ready(), f.col("done_us"), length, inner=False),
        f.when(waits, _span(f.col("partition"), handed(), ready(), length, inner=True)),
    )
    each = rows.select(f.inline(spans))
    longest = each.groupBy("waiting", "first").agg(f.max("last").alias("last"))  # a burst of thousands is one row
    every = longest.where("last >= first").select("waiting", f.explode(f.sequence("first", "last")).alias("slot"))
    slots = every.groupBy("slot").agg(
        f.countDistinct("waiting").alias("partitions"), f.count_if(f.col("waiting").isNull()).alias("services")
    )
    return slots.where((f.col("services") == 0) & (f.col("partitions") >= SEVERAL)).select("slot")


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


def _span(waiting: Column, from_us: Column, until_us: Column, length_us: int, *, inner: bool) -> Column:
    """Return waiting, first, last: the slots that lie wholly inside (inner), or partly inside, of [from, until].

    Of what lasts longer than `LONGEST_US` only the end: a time may be absurd.
    """
    from_us = f.greatest(from_us, until_us - LONGEST_US)
    first = (from_us + length_us - 1) / length_us if inner else from_us / length_us
    last = until_us / length_us - (1 if inner else 0)
    return f.struct(waiting.alias("waiting"), f.floor(first).alias("first"), f.floor(last).alias("last"))
