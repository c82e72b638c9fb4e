"""Each late event gets one cause: the first whose rule holds, in the order of `Cause`. The last holds always."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from report.causes import Cause
from report.spark.literal import array_of
from report.spark.pace import Usual
from report.spark.standstill import Interval
from report.spark.terms import SECOND_US, Terms

UPON_ARRIVAL_US: Final = SECOND_US
"""What arrived within the last second, or the target where that is longer, is a burst."""
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
    return array_of(intervals, "array<bigint>")
