"""Why events were late: what they waited for, what the group did meanwhile, causes, spells."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged
from report.causes import Cause
from report.result import CauseOfLateness, LateEpisode, Tail
from report.spark import group_history as history
from report.spark import ownership, pace, spells, standstill
from report.spark.attribution import DEAD, HANDED_OVER, Circumstances, attributed, never_done
from report.spark.literal import rows_of
from report.spark.planning import planners
from report.spark.queues import Tables, waited
from report.spark.schema import TIMES
from report.spark.seconds import NOWHERE
from report.spark.stretches import stretches, within
from report.spark.takeovers import Judge, Takeover, deaths
from report.spark.terms import SECOND_US, Terms, accounted
from report.spark.why import Spell, Telling

NEEDED: Final = (*TIMES[:5], "partition", "offset", "replica", "epoch")
KEPT: Final = ("partition", "replica", "epoch", "offset", "done_us", "cause", *spells.FIGURES)


def tail(
    events: DataFrame,
    tables: Tables,
    terms: Terms,
    journal: Sequence[JournalEntry],
    usual: pace.Usual,
    *,
    lost: int,
    pipeline: bool,
) -> Tail:
    """Return why events were late. lost: events that were never done, and not refused."""
    with keeping() as keep:
        keep(tables.stays)
        late = keep(late_events(events, tables, terms, journal, usual, lost=lost, pipeline=pipeline, keep=keep))
        told = keep(spells.spells(late))
        with planners(events.sparkSession, 1) as beside:
            counting = beside.submit(spells.by_cause(late, terms).collect)
            found = spells.largest(told).collect()
        counts = counting.result()
        total = told.count() if len(found) == spells.LISTED else len(found)
    started = history.starting(history.only(journal, ReplicaChanged), _end_us(terms))
    starts = [(span.replica, span.from_us, span.until_us or span.from_us) for span in started]
    telling = Telling(terms.started_us, terms.target_us, usual.service_us, pipeline=pipeline, starts=starts)
    return Tail(
        late=sum(row["events"] for row in counts),
        causes=_causes(counts),
        episodes=tuple(sorted((_spell(row.asDict(recursive=True), telling) for row in found), key=_by_time)),
        episodes_left_out=total - len(found),
        by_second=_by_second(counts, terms.shown_s),
    )


@contextmanager
def keeping() -> Iterator[Callable[[DataFrame], DataFrame]]:
    """Yield what has Spark keep a table, until the end of the block."""
    kept: list[DataFrame] = []

    def keep(table: DataFrame) -> DataFrame:
        kept.append(table.persist())
        return table

    try:
        yield keep
    finally:
        for table in kept:
            table.unpersist()


def late_events(
    events: DataFrame,
    tables: Tables,
    terms: Terms,
    journal: Sequence[JournalEntry],
    usual: pace.Usual,
    *,
    lost: int,
    pipeline: bool,
    keep: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """Return every late event with its cause and the figures of `spells.FIGURES`. keep: has Spark keep a table."""
    changes, plans = history.only(journal, ReplicaChanged), history.only(journal, PlanWritten)
    placed = events.select(*NEEDED).withColumn("partition", f.coalesce("partition", f.lit(NOWHERE)))
    done = placed.where("done_us is not null")
    late = keep(waited(done, tables, terms, usual))
    loads = keep(
        pace.owner_loads(tables.arrived, terms, usual.service_us).withColumnRenamed("second", "intended_second")
    )
    moments = [*(change.at_us for change in changes), *(plan.at_us for plan in plans)]
    with planners(events.sparkSession, 2) as beside:
        beside.submit(loads.count)
        takeovers = beside.submit(ownership.takeovers(tables.stays).collect)
        stops = _stops(done, late, terms, usual, moments) if moments else []
    known = Circumstances(
        usual=usual,
        stops=stops,
        starting=history.union(history.starting(changes, _end_us(terms))),
        deaths_us=[at_us for times in deaths(changes).values() for at_us in times],
    )
    kinds = _kinds(takeovers.result(), Judge(changes, plans), events.sparkSession)
    explained = (
        late.join(f.broadcast(kinds), ["partition", "came_us"], "left")
        .withColumn("intended_second", terms.second("intended_us"))
        .join(loads, ["replica", "intended_second"], "left")
    )
    causes = attributed(explained, terms, known).select(*KEPT)
    if not lost:
        return causes
    never = never_done(events.where(f.col("done_us").isNull() & accounted()), known, pipeline=pipeline)
    return causes.unionByName(spells.with_figures(never).select(*KEPT))


def _stops(
    done: DataFrame, late: DataFrame, terms: Terms, usual: pace.Usual, moments: Sequence[int]
) -> list[standstill.Interval]:
    """Return the group's standstills, looked for where one could explain a late event. moments: its changes, µs."""
    stood = f.least("unstalled_us", "unpaused_us") - f.col("intended_us") <= terms.target_us
    some = late.where(stood).groupBy(terms.second("done_us").alias("second"))
    where = some.agg(f.min(f.least("intended_us", "since_us")).alias("from_us")).collect()
    if not where:
        return []
    around = within(done, terms, stretches([(row["second"], row["from_us"]) for row in where], terms))
    still = [row["slot"] for row in standstill.still_slots(around, terms.target_us, usual.service_us).collect()]
    return standstill.stops(still, standstill.slot_us(usual.service_us), terms.target_us // 10, moments)


def _kinds(rows: Iterable[Any], judge: Judge, spark: SparkSession) -> DataFrame:
    """Return partition, came_us, takeover."""
    found: dict[tuple[int, int], str] = {}
    for row in rows:
        one = Takeover(row["partition"], row["old"] or "", row["new"] or "", row["left_us"], row["came_us"])
        place = (one.partition, one.came_us)
        found[place] = DEAD if found.get(place) == DEAD or judge.by_death(one) else HANDED_OVER
    table = [(*place, kind) for place, kind in found.items()]
    return rows_of(spark, table, "partition int, came_us long, takeover string")


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


def _spell(row: Mapping[str, Any], telling: Telling) -> LateEpisode:
    figures = row["worst"]
    partition = None if row["partition"] in {None, NOWHERE} else row["partition"]
    spell = Spell(partition, row["replica"], row["epoch"], row["events"], figures)
    return LateEpisode(
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


def _by_time(spell: LateEpisode) -> tuple[float, int, str]:
    return (spell.from_s, -1 if spell.partition is None else spell.partition, spell.cause)


def _end_us(terms: Terms) -> int:
    return terms.started_us + terms.shown_s * SECOND_US
