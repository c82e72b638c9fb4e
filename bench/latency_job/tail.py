"""Why events were late: context, causes, spells. Five Spark jobs over the stretches around late events."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from bench.latency_job import group_history as history
from bench.latency_job import ownership, pace, spells, standstill
from bench.latency_job.attribution import DEAD, HANDED_OVER, Circumstances, attributed, never_done
from bench.latency_job.schema import TIMES
from bench.latency_job.seconds import NOWHERE, served
from bench.latency_job.stretches import stretches, within
from bench.latency_job.takeovers import Judge, Takeover, deaths
from bench.latency_job.terms import SECOND_US, Terms, accounted
from bench.latency_job.waiting import queued
from bench.latency_job.why import Spell, Telling
from bench.report.causes import Cause
from bench.report.result import CauseOfLateness, LateSpell, Tail
from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged

NEEDED: Final = (*TIMES[:5], "partition", "offset", "replica", "epoch")
KEYS: Final = ("partition", "replica", "epoch", "second")
"""Of `seconds.served`, and so of the stays."""
SENT_TO_ALL: Final = 1_000_000
"""Most rows of a table that each task gets as a whole (some 100 MB); larger ones are sorted and merged."""
KEPT: Final = ("partition", "replica", "epoch", "offset", "done_us", "cause", *spells.FIGURES)


@dataclass(frozen=True, slots=True)
class Tables:
    """What is known by second."""

    arrived: DataFrame
    """Of `seconds.owned`."""
    late: Sequence[tuple[int, int]]
    """Second in which late events were done, earliest intended time of these (µs)."""
    stays: DataFrame
    """Of `ownership`, kept by Spark."""
    takeovers: Sequence[Row]
    """Of `ownership`, those in whose stays events were late."""
    size: int
    """Rows that `stays` has at most."""


def tables(
    cells: DataFrame, arrived: DataFrame, late: Sequence[tuple[int, int]], journal: Sequence[JournalEntry], size: int
) -> Tables:
    """Return what `tail` asks for. cells: of `seconds.cells`, size: their number; else as in `Tables`."""
    stays = ownership.stays(served(cells), deaths(history.only(journal, ReplicaChanged))).persist()
    return Tables(arrived, late, stays, ownership.takeovers(stays).collect(), size)


def tail(
    events: DataFrame,
    tables: Tables,
    terms: Terms,
    journal: Sequence[JournalEntry],
    usual: pace.Usual,
    *,
    pipeline: bool,
) -> Tail:
    """Return why events were late."""
    late = late_events(events, tables, terms, journal, usual, pipeline=pipeline).persist()
    try:
        told = spells.spells(late).persist()
        counts = spells.by_cause(late, terms).collect()
        found = spells.largest(told).collect()
        total = told.count() if len(found) == spells.LISTED else len(found)
        told.unpersist()
    finally:
        late.unpersist()
        tables.stays.unpersist()
    started = history.starting(history.only(journal, ReplicaChanged), _end_us(terms))
    starts = [(span.replica, span.from_us, span.until_us or span.from_us) for span in started]
    telling = Telling(terms.started_us, terms.target_us, usual.service_us, pipeline=pipeline, starts=starts)
    return Tail(
        late=sum(row["events"] for row in counts),
        causes=_causes(counts),
        spells=tuple(sorted((_spell(row.asDict(recursive=True), telling) for row in found), key=_by_time)),
        spells_left_out=total - len(found),
        by_second=_by_second(counts, terms.shown_s),
    )


def late_events(
    events: DataFrame,
    tables: Tables,
    terms: Terms,
    journal: Sequence[JournalEntry],
    usual: pace.Usual,
    *,
    pipeline: bool,
) -> DataFrame:
    """Return every late event with its cause and the figures of `spells.FIGURES`."""
    spark = events.sparkSession
    changes, plans = history.only(journal, ReplicaChanged), history.only(journal, PlanWritten)
    placed = events.select(*NEEDED).withColumn("partition", f.coalesce("partition", f.lit(NOWHERE)))
    changes_of_hands = _changes_of_hands(tables.stays)
    if tables.size <= SENT_TO_ALL:
        changes_of_hands = f.broadcast(changes_of_hands)
    found = within(placed, terms, stretches(tables.late, terms), spark)
    queue = queued(_with_stays(found, changes_of_hands), usual)
    moments = [*(change.at_us for change in changes), *(plan.at_us for plan in plans)]
    waited, stops = _waited_and_stops(queue, terms, usual, moments)
    known = Circumstances(
        usual=usual,
        stops=stops,
        starting=history.union(history.starting(changes, _end_us(terms))),
        deaths_us=[at_us for times in deaths(changes).values() for at_us in times],
    )
    kinds = _kinds(tables.takeovers, Judge(changes, plans), spark)
    loads = pace.owner_loads(tables.arrived, terms, usual.service_us).withColumnRenamed("second", "intended_second")
    late = (
        waited.join(f.broadcast(kinds), ["partition", "came_us"], "left")
        .withColumn("intended_second", terms.second("intended_us"))
        .join(loads, ["replica", "intended_second"], "left")
    )
    lost = never_done(events.where(f.col("done_us").isNull() & accounted()), known, pipeline=pipeline)
    causes = attributed(late, terms, known).select(*KEPT)
    return causes.unionByName(spells.with_figures(lost).select(*KEPT))


def _waited_and_stops(
    queue: DataFrame, terms: Terms, usual: pace.Usual, moments: Sequence[int]
) -> tuple[DataFrame, list[standstill.Interval]]:
    """Return the late events of `queue`, kept by Spark, and the group's standstills.

    These are looked for only in stretches with an event that one could explain. queue: of `queued`. moments: when the
    group changed, µs; where it never did there is no standstill. What both need of the queue is kept in between: to
    put the events in order costs more than all that follows.
    """
    if not moments:
        return queue.where(terms.late()).persist(), []
    late = f.when(terms.late(), f.struct(*queue.columns)).alias("late")
    kept = queue.select(*standstill.LOOKED_AT, late).persist()
    waited = kept.where("late is not null").select("late.*").persist()
    stood = f.least("unstalled_us", "unpaused_us") - f.col("intended_us") <= terms.target_us
    where = [row["stretch"] for row in waited.where(stood).select("stretch").distinct().collect()]
    slots = standstill.still_slots(kept.where(f.col("stretch").isin(where)), terms.target_us, usual.service_us)
    still = [row["slot"] for row in slots.collect()] if where else []
    kept.unpersist()
    length_us = standstill.slot_us(usual.service_us)
    return waited, standstill.stops(still, length_us, terms.target_us // 10, moments)


def _changes_of_hands(stays: DataFrame) -> DataFrame:
    """Return the rows of `stays` into which a partition was handed over: `of_` KEYS, old, left_us, came_us."""
    known = stays.where("left_us is not null")
    return known.select(*[f.col(name).alias(f"of_{name}") for name in KEYS], "old", "left_us", "came_us")


def _with_stays(rows: DataFrame, changes: DataFrame) -> DataFrame:
    """Add old, left_us, came_us: how the event's partition had come to its replica."""
    same = [f.col(name).eqNullSafe(f.col(f"of_{name}")) for name in KEYS]
    return rows.join(changes, same, "left").drop(*[f"of_{name}" for name in KEYS])


def _kinds(rows: Iterable[Any], judge: Judge, spark: SparkSession) -> DataFrame:
    """Return partition, came_us, takeover."""
    found: dict[tuple[int, int], str] = {}
    for row in rows:
        one = Takeover(row["partition"], row["old"] or "", row["new"] or "", row["left_us"], row["came_us"])
        place = (one.partition, one.came_us)
        found[place] = DEAD if found.get(place) == DEAD or judge.by_death(one) else HANDED_OVER
    table = [(*place, kind) for place, kind in found.items()]
    return spark.createDataFrame(table, "partition int, came_us long, takeover string")


def _causes(counts: Iterable[Any]) -> tuple[CauseOfLateness, ...]:
    events: dict[str, int] = {}
    worst: dict[str, int] = {}
    for row in counts:
        events[row["cause"]] = events.get(row["cause"], 0) + row["events"]
        if row["worst_us"] is not None:
            worst[row["cause"]] = max(worst.get(row["cause"], row["worst_us"]), row["worst_us"])
    total = sum(events.values())
    named = sorted(events, key=lambda cause: (-events[cause], cause))
    return tuple(
        CauseOfLateness(
            cause=cause,
            events=events[cause],
            share=events[cause] / total,
            worst_s=worst[cause] / 1e6 if cause in worst else None,
        )
        for cause in named
    )


def _by_second(counts: Iterable[Any], shown_s: int) -> dict[str, tuple[int, ...]]:
    """Return cause → late events by second; what was intended outside of the shown seconds is at the nearest."""
    series: dict[str, list[int]] = {}
    for row in counts:
        line = series.setdefault(row["cause"], [0] * shown_s)
        line[min(max(row["second"], 0), shown_s - 1)] += row["events"]
    return {cause.value: tuple(series[cause]) for cause in Cause if cause in series}


def _spell(row: Mapping[str, Any], telling: Telling) -> LateSpell:
    figures = row["worst"]
    partition = None if row["partition"] in {None, NOWHERE} else row["partition"]
    spell = Spell(partition, row["replica"], row["epoch"], row["events"], figures)
    return LateSpell(
        cause=row["cause"],
        partition=partition,
        replica=row["replica"],
        epoch=row["epoch"],
        from_s=(row["from_us"] - telling.started_us) / 1e6,
        until_s=(row["until_us"] - telling.started_us) / 1e6,
        events=row["events"],
        worst_s=None if figures["latency_us"] is None else figures["latency_us"] / 1e6,
        why=telling.why(Cause(row["cause"]), spell),
    )


def _by_time(spell: LateSpell) -> tuple[float, int, str]:
    return (spell.from_s, -1 if spell.partition is None else spell.partition, spell.cause)


def _end_us(terms: Terms) -> int:
    return terms.started_us + terms.shown_s * SECOND_US
