"""Why events were late: what they waited for, what the group did meanwhile, causes, and episodes of one cause."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged
from report.causes import Cause, CauseOfLateness, LateEpisode, Tail
from report.spark import group_history as history
from report.spark.attribution import DEAD, HANDED_OVER, Circumstances, attributed, group_stops, never_done
from report.spark.events import TIMES
from report.spark.queues import owner_loads, waited
from report.spark.seconds import Shares, served
from report.spark.takeovers import Deaths, Takeover, deaths, stays, takeovers
from report.spark.terms import NOWHERE, SECOND_US, Terms, Usual, accounted
from report.spark.why import Telling

NEEDED: Final = (*TIMES[:5], "partition", "offset", "replica", "epoch")
LISTED: Final = 1_000
"""Most episodes that a report lists: those with most events."""
APART_US: Final = 2 * SECOND_US
"""Two late events that were intended further apart belong to two episodes."""
FIGURES: Final = (
    "latency_us", "intended_us", "placed_us", "accepted_us", "handed_us", "received_us", "start_us", "service_us",
    "left_us", "came_us", "since_us", "idle_us", "slowed_us", "stop_us", "load", "over_from", "old",
)  # fmt: skip
"""Columns of an episode's worst event that its sentence is made from."""
KEPT: Final = ("partition", "replica", "epoch", "offset", "done_us", "cause", *FIGURES)


def explain(
    events: DataFrame,
    cells: DataFrame,
    arrived: DataFrame,
    terms: Terms,
    journal: Sequence[JournalEntry],
    *,
    usual: Usual,
    shares: Shares,
    pipeline: bool,
) -> Tail:
    """Return why events were late. cells, arrived: of `seconds.cells` and `seconds.owned`."""
    if shares.in_sla == shares.events:
        return Tail(late=0, causes=(), episodes=())
    changes = history.only(journal, ReplicaChanged)
    with ExitStack() as kept:
        late = _keep(
            late_events(
                events, cells, arrived, terms, journal, usual=usual, kept=kept, lost=shares.lost, pipeline=pipeline
            ),
            kept,
        )
        together = _keep(episodes(late), kept)
        counts = _by_cause(late, terms)
        largest = together.orderBy(f.desc("events"), "from_us", "partition", "cause").limit(LISTED).collect()
        left_out = together.count() - len(largest)
    starts = [
        (span.replica, span.from_us, span.until_us or span.from_us)
        for span in history.starting(changes, terms.ended_us)
    ]
    telling = Telling(terms.started_us, terms.target_us, usual.service_us, pipeline=pipeline, starts=starts)
    return Tail(
        late=sum(row["events"] for row in counts),
        causes=_causes(counts),
        episodes=tuple(sorted((_episode(row.asDict(recursive=True), telling) for row in largest), key=_by_time)),
        episodes_left_out=left_out,
        by_second=_by_second(counts, terms.shown_s),
    )


def late_events(
    events: DataFrame,
    cells: DataFrame,
    arrived: DataFrame,
    terms: Terms,
    journal: Sequence[JournalEntry],
    *,
    usual: Usual,
    kept: ExitStack,
    lost: int,
    pipeline: bool,
) -> DataFrame:
    """Return every late event with its cause: the columns `KEPT`. kept: tables that Spark keeps until it is left."""
    changes, plans = history.only(journal, ReplicaChanged), history.only(journal, PlanWritten)
    died = deaths(changes)
    placed = events.select(*NEEDED).withColumn("partition", f.coalesce("partition", f.lit(NOWHERE)))
    done = placed.where("done_us is not null")
    owners = _keep(stays(served(cells), died), kept)
    late = _keep(waited(done, owners, terms, usual), kept)
    moments = [*(change.at_us for change in changes), *(plan.at_us for plan in plans)]
    known = Circumstances(
        usual=usual,
        stops=group_stops(done, late, terms, usual, moments) if moments else [],
        starting=history.union(history.starting(changes, terms.ended_us)),
        deaths_us=[at_us for times in died.values() for at_us in times],
    )
    loads = owner_loads(arrived, usual.service_us).withColumnRenamed("second", "intended_second")
    explained = (
        late.join(f.broadcast(_kinds(owners, Deaths(changes, plans))), ["partition", "came_us"], "left")
        .withColumn("intended_second", terms.second("intended_us"))
        .join(f.broadcast(loads), ["replica", "intended_second"], "left")
    )
    found = attributed(explained, terms, known).select(*KEPT)
    if not lost:
        return found
    never = never_done(events.where(f.col("done_us").isNull() & accounted()), known, pipeline=pipeline)
    return found.unionByName(never.select(*[name for name in KEPT if name in never.columns]), allowMissingColumns=True)


def episodes(late: DataFrame) -> DataFrame:
    """Return late events of one cause that follow each other on one partition.

    cause, partition, replica, epoch, from_us, until_us, events, worst (its worst event's `FIGURES`).
    """
    line = ("partition", "cause")
    order = Window.partitionBy(*line).orderBy("intended_us", "offset", "done_us")
    who = f.struct("replica", "epoch")
    apart = f.col("intended_us") - f.lag("intended_us").over(order) > APART_US
    begins = f.coalesce(apart | (f.lag(who).over(order) != who), f.lit(True))
    numbered = late.withColumn("begins", begins.cast("int")).withColumn("episode", f.sum("begins").over(order))
    return numbered.groupBy(*line, "episode").agg(
        f.first("replica").alias("replica"),
        f.first("epoch").alias("epoch"),
        f.min("intended_us").alias("from_us"),
        f.max("intended_us").alias("until_us"),
        f.count("*").alias("events"),
        f.max(f.struct(*FIGURES)).alias("worst"),
    )


def _keep(table: DataFrame, kept: ExitStack) -> DataFrame:
    """Have Spark keep a table that is asked for more than once, until `kept` is left."""
    table.persist()
    kept.callback(table.unpersist)
    return table


def _kinds(owners: DataFrame, rule: Deaths) -> DataFrame:
    """Return partition, came_us, takeover of the changes of hands after which events were late."""
    found: dict[tuple[int, int], str] = {}
    for row in takeovers(owners).collect():
        one = Takeover(row["partition"], row["old"] or "", row["new"] or "", row["left_us"], row["came_us"])
        place = (one.partition, one.came_us)
        found[place] = DEAD if found.get(place) == DEAD or rule.by_death(one) else HANDED_OVER
    table = [(*place, kind) for place, kind in found.items()]
    return owners.sparkSession.createDataFrame(table, "partition int, came_us long, takeover string")


def _by_cause(late: DataFrame, terms: Terms) -> list[Any]:
    """Return rows of cause, second (of intent), events, worst_us."""
    counted = late.groupBy("cause", terms.second("intended_us").alias("second"))
    return list(counted.agg(f.count("*").alias("events"), f.max("latency_us").alias("worst_us")).collect())


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


def _episode(row: Mapping[str, Any], telling: Telling) -> LateEpisode:
    partition = None if row["partition"] in {None, NOWHERE} else row["partition"]
    figures = {**row["worst"], "partition": partition, "replica": row["replica"], "epoch": row["epoch"]}
    return LateEpisode(
        cause=row["cause"],
        partition=partition,
        replica=row["replica"],
        epoch=row["epoch"],
        from_s=(row["from_us"] - telling.started_us) / 1e6,
        until_s=(row["until_us"] - telling.started_us) / 1e6,
        events=row["events"],
        worst_s=None if figures["latency_us"] is None else figures["latency_us"] / 1e6,
        why=telling.why(Cause(row["cause"]), figures),
    )


def _by_time(episode: LateEpisode) -> tuple[float, int, str]:
    return (episode.from_s, -1 if episode.partition is None else episode.partition, episode.cause)
