"""Records become counts in one pass over them: dirt by rule, events by cell of the trace.

A record travels as whole numbers, its tallies: the cell of each event, or below zero why there is none. What is summed
at the end is one number for each tally, so that nothing is counted twice or forgotten.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from bench.taxi import places
from bench.taxi.months import Month
from bench.taxi.outcome import RULES
from bench.taxi.request import Request, Window

DROPPED: Final = {rule: -1 - number for number, rule in enumerate(RULES)}
"""Tally of a row that breaks a rule."""
OUTSIDE: Final = -1 - len(RULES)
"""Tally of an event after the end of the trace."""
SECOND_US: Final = 1_000_000
BLOCK_US: Final = 30 * 60 * SECOND_US
"""Trips picked up in the same half hour are counted together: their duplicates meet there, and most of their events
fall into the same few seconds of the trace, so that little is left to be sent on."""
TASKS_PER_MONTH: Final = 32
"""A task then holds half a million trips of a busy month, some 50 MB."""


def tallied(records: DataFrame, request: Request, window: Window, month: Month, kind: places.Kind | None) -> DataFrame:
    """Return trip, block, first, last for each record of a file of `month`.

    first: tally of the pick-up, or of the rule that the record breaks; last: tally of the drop-off.
    kind: of the places, where trips are spread by them.
    """
    partition = _partition(request, kind)
    return records.select(
        "trip",
        f.coalesce(f.expr(f"picked_up_us div {BLOCK_US}"), f.col("trip")).alias("block"),
        f.coalesce(_broken(request, month), _cell("picked_up_us", window, partition)).alias("first"),
        _cell("dropped_off_us", window, partition).alias("last"),
    )


def counted(tallies: Sequence[DataFrame], request: Request, months: int) -> DataFrame:
    """Return how many rows and events there are of each tally: tally, n."""
    trips = (
        reduce(DataFrame.union, tallies)
        .repartition(TASKS_PER_MONTH * months, "block")
        .groupBy("trip", "first", "last")
        .agg(f.count(f.lit(1)).alias("records"))
    )
    tally, of_event = f.col("tally"), (f.col("tally") >= 0) | (f.col("tally") == OUTSIDE)
    further = f.when(tally == DROPPED["duplicate"], f.col("records") - 1).otherwise(f.col("records"))
    return (
        trips.select(f.explode(_tallies(request)).alias("tally"), "records")
        .select("tally", f.when(of_event, 1).otherwise(further).alias("n"))
        .groupBy("tally")
        .agg(f.sum("n").alias("n"))
    )


def _tallies(request: Request) -> Column:
    """Return the tallies of a trip: its events, and a duplicate where there are further records of it."""
    first, last = f.col("first"), f.col("last")
    events = {"both": f.array(first, last), "pickup": f.array(first), "dropoff": f.array(last)}[request.ends]
    return (
        f.when((first < 0) & (first != OUTSIDE), f.array(first))
        .when(f.col("records") == 1, events)
        .otherwise(f.concat(events, f.array(_long(DROPPED["duplicate"]))))
    )


def _broken(request: Request, month: Month) -> Column:
    """Return the tally of the first rule that a record breaks, null where it breaks none."""
    picked_up, dropped_off = f.col("picked_up_us"), f.col("dropped_off_us")
    in_month = (picked_up >= month.began_s * SECOND_US) & (picked_up < month.ended_s * SECOND_US)
    breaks = {
        "unreadable": picked_up.isNull() | dropped_off.isNull(),
        "other_month": ~in_month,
        "backwards": dropped_off < picked_up,
    }
    for rule, column, most in (("distance", "miles", request.max_miles), ("fare", "fare", request.max_fare)):
        if most is not None:
            breaks[rule] = ~f.coalesce(f.col(column).between(0, most), f.lit(False))
    tallies = [f.when(broken, _long(DROPPED[rule])) for rule, broken in breaks.items()]
    return f.coalesce(*tallies)


def _cell(time: str, window: Window, partition: Column) -> Column:
    """Return second · partitions + partition of a time; OUTSIDE where the trace does not hold it.

    The second is the span divided by the speed, rounded down, in whole numbers alone.
    """
    began_us = window.began_s * SECOND_US
    ended_us = began_us + math.ceil(window.duration_s * window.speed * SECOND_US)
    speed = window.speed
    second = f.expr(f"({time} - {began_us}L) * {speed.denominator}L div {speed.numerator * SECOND_US}L")
    inside = (f.col(time) >= began_us) & (f.col(time) < ended_us)
    return f.when(inside, second * window.partitions + partition).otherwise(_long(OUTSIDE))


def _partition(request: Request, kind: places.Kind | None) -> Column:
    if request.partitions == 1:
        return _long(0)
    if kind is None:
        return f.pmod(f.col("trip"), _long(request.partitions))
    table = ",".join(map(str, places.partitions_of(kind, request.partitions)))
    return f.get(f.expr(f"array({table})"), f.col("place")).cast("bigint")


def _long(number: int) -> Column:
    return f.lit(number).cast("bigint")
