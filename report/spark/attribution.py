"""Each late event gets one cause: the first whose rule holds, in the order of `Cause`. The last holds always.

One rule needs the whole group: it stood still when nobody finished anything although several partitions had events
waiting.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from report.causes import Cause
from report.spark.terms import SECOND_US, Terms, Usual, handed, ready

UPON_ARRIVAL_US: Final = SECOND_US
"""What arrived within the last second, or the target where that is longer, is a burst."""
LEAST_SLOT_US: Final = 20_000
"""Resolution: a slot of time counts as a standstill when it holds no completion and lies in nobody's service."""
AFTER_CHANGE_US: Final = 5_000_000
"""A standstill is the group's when a plan, or a replica's coming or going, lies in it or so shortly before."""
SEVERAL: Final = 2
LONGEST_US: Final = 600_000_000
Interval = tuple[int, int]
BEFORE_S: Final = 3
"""Seconds before the first late event that are looked at too; the target's double where that is longer."""
EARLIEST_S: Final = -60
"""Nothing is looked at before; a time may be absurd."""
DEAD: Final = "dead"
HANDED_OVER: Final = "handover"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the journal and the whole run say, beside the events themselves."""

    usual: Usual = field(default_factory=Usual)
    stops: Sequence[Interval] = ()
    """Standstills of the whole group, µs."""
    starting: Sequence[Interval] = ()
    """When some replica was requested and not ready, µs, disjoint."""
    deaths_us: Sequence[int] = field(default=())


def attributed(late: DataFrame, terms: Terms, known: Circumstances) -> DataFrame:
    """Return `late` with `cause`, `latency_us`, `slowed_us` (cost of slow services) and `stop_us` (standstills it met).

    late: late events with the columns of `queues.waited`, `takeover` ("dead", "handover" or null: how its partition
    changed hands), and load, over_from of its owner.
    """
    stopped = _overlap(known.stops, "since_us", "start_us")
    rows = late.withColumns(
        {
            "latency_us": f.col("done_us") - f.col("intended_us"),
            "slowed_us": f.col("done_us") - f.col("unslowed_us"),
            "stop_us": stopped,
        }
    )
    return rows.withColumn("cause", _cause(terms, known))


def never_done(lost: DataFrame, known: Circumstances, *, pipeline: bool) -> DataFrame:
    """Return events that were never done, with `cause`.

    Upstream when it never reached Payment's topic; replica-dead when a replica died after it had been handed over;
    overloaded otherwise: nobody came to serve it.
    """
    reached = f.col("requested_records") > 0 if pipeline else f.lit(True)
    last_death_us = max(known.deaths_us, default=None)
    died = f.lit(False) if last_death_us is None else f.coalesce("placed_us", "intended_us") <= last_death_us
    cause = f.when(~reached, Cause.UPSTREAM.value).when(died, Cause.REPLICA_DEAD.value)
    return lost.withColumn("cause", cause.otherwise(Cause.OVERLOADED.value))


def _cause(terms: Terms, known: Circumstances) -> Column:
    def in_time(done_us: Column | str) -> Column:
        done = f.col(done_us) if isinstance(done_us, str) else done_us
        return done - f.col("intended_us") <= terms.target_us

    late_by = f.greatest(f.col("placed_us") - f.col("intended_us"), f.lit(0))
    sending = f.greatest(f.col("accepted_us") - f.col("placed_us") - known.usual.sending_us, f.lit(0))
    unpaused = in_time("unpaused_us")
    unstalled = in_time("unstalled_us")
    pause_in_stop = _overlap(known.stops, "left_us", "came_us") * 2 >= f.col("came_us") - f.col("left_us")
    stopped = (unstalled & (f.col("stop_us") > 0)) | (unpaused & pause_in_stop)
    recent = f.col("since_us") >= f.col("handed_us") - max(UPON_ARRIVAL_US, terms.target_us)
    rules = {
        Cause.GENERATOR: in_time(f.col("done_us") - late_by),
        Cause.UPSTREAM: in_time(f.col("done_us") - sending),
        Cause.DOWNSTREAM: in_time("unslowed_us"),
        Cause.REPLICA_DEAD: (f.col("takeover") == DEAD) & unpaused,
        Cause.GROUP_STOPPED: stopped,
        Cause.HANDOVER: (f.col("takeover") == HANDED_OVER) & unpaused,
    }
    rules[Cause.UPSTREAM] = rules[Cause.UPSTREAM] | (
        unstalled & ~_any(rules[Cause.REPLICA_DEAD], stopped, rules[Cause.HANDOVER])
    )
    rules |= {
        Cause.REPLICA_STARTING: _meets(known.starting, "handed_us", "start_us"),
        Cause.BURST: recent & f.col("over_from").isNull(),
    }
    found = f.lit(Cause.OVERLOADED.value)
    for cause in reversed([cause for cause in Cause if cause in rules]):
        found = f.when(f.coalesce(rules[cause], f.lit(False)), cause.value).otherwise(found)
    return found


def _any(*conditions: Column) -> Column:
    """Return whether one of them is known to hold."""
    found = f.lit(False)
    for condition in conditions:
        found = found | f.coalesce(condition, f.lit(False))
    return found


def _overlap(intervals: Sequence[Interval], from_us: str, until_us: str) -> Column:
    """Return how long [from, until] overlaps `intervals` (disjoint), µs."""
    zero = f.lit(0).cast("long")
    if not intervals:
        return zero

    def add(total: Column, piece: Column) -> Column:
        shared = f.least(f.col(until_us), piece[1]) - f.greatest(f.col(from_us), piece[0])
        return total + f.greatest(shared, zero)

    known = f.col(from_us).isNotNull() & f.col(until_us).isNotNull()
    return f.when(known, f.aggregate(_pieces(intervals), zero, add)).otherwise(zero)


def _meets(intervals: Sequence[Interval], from_us: str, until_us: str) -> Column:
    """Return whether [from, until] overlaps one of `intervals` (disjoint). Cheaper than to ask for how long."""
    begins, ends = f.col(from_us), f.col(until_us)
    return (begins < ends) & f.exists(_pieces(intervals), lambda piece: (piece[0] < ends) & (begins < piece[1]))


def _pieces(intervals: Sequence[Interval]) -> Column:
    return f.from_json(f.lit(json.dumps(intervals)), "array<array<bigint>>")


def group_stops(done: DataFrame, late: DataFrame, terms: Terms, usual: Usual, moments: Sequence[int]) -> list[Interval]:
    """Return the group's standstills in the seconds in which one could explain a late event, and some before.

    moments: times of plans and of replicas' comings and goings, µs.
    """
    back_s = max(BEFORE_S, -(-2 * terms.target_us // SECOND_US))
    stood = f.least("unstalled_us", "unpaused_us") - f.col("intended_us") <= terms.target_us
    waits = late.where(stood).groupBy(terms.second("done_us").alias("until_s"))
    stretches = waits.agg(f.min(terms.second("least(intended_us, since_us)")).alias("from_s")).where(
        f.col("until_s").between(EARLIEST_S, terms.shown_s)
    )
    first = f.greatest(f.col("from_s") - back_s, f.lit(EARLIEST_S).cast("long"))
    seconds = stretches.select(f.explode(f.sequence(first, "until_s")).alias("second")).distinct()
    around = done.withColumn("second", terms.second("done_us")).join(f.broadcast(seconds), "second", "left_semi")
    still = [row["slot"] for row in still_slots(around, terms.target_us, usual.service_us).collect()]
    return stops(still, slot_us(usual.service_us), terms.target_us // 10, moments)


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
