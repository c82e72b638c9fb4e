"""events.parquet and the journal → Result: Spark makes small tables, the rest is plain arithmetic."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged
from report.result import STAGES, Effects, Lateness, Provenance, Result, Stage, Tail, TopicRecords
from report.run_info import RunInfo
from report.spark import group_history as history
from report.spark import measures, seconds, series, verdict
from report.spark.breakdowns import breakdowns, heat_map
from report.spark.cost import bound_of, cost
from report.spark.errors import ReportError
from report.spark.integrity import checks, integrity
from report.spark.narrowing import ranks_within
from report.spark.pace import Usual, usual
from report.spark.planning import planners, share_classes
from report.spark.queues import tables
from report.spark.rebalances import rebalances
from report.spark.schema import COLUMN_OF
from report.spark.tail import tail
from report.spark.terms import Terms, latency


@dataclass(frozen=True, slots=True)
class Essentials:
    """What every report needs first; the other figures are made from the same tables."""

    terms: Terms
    counts: Mapping[str, int]
    seconds: Sequence[Mapping[str, Any]]
    """Rows of `seconds.by_second`."""
    done: Mapping[int, int]
    """Second → events done."""
    ranks: Mapping[str, int]
    """Events done, and percentiles of the latency by the names of PARTS_PER_MILLION (µs); empty: nothing was done."""
    cells: DataFrame
    arrived: DataFrame
    kept: Sequence[DataFrame]
    """Tables that Spark keeps until they are forgotten."""
    journal: Sequence[JournalEntry]
    usual: Usual
    tail: Tail


def essentials(run: RunInfo, started_us: int, events: DataFrame, reading: "Future[list[JournalEntry]]") -> Essentials:
    """Return percentiles, share in SLA, series and late events by cause. started_us: second 0.

    events: as in events.parquet. reading: gives the journal, when events have been counted. The caller ends the
    session, or calls `forget`. Raises ReportError for a run without events, and what `reading` raises.
    """
    target_us, pipeline = round(run.latency_target_s * 1e6), run.topology == "pipeline"
    begun, found = Terms(started_us, target_us, 0), Tail(late=0, causes=(), episodes=())
    share_classes(events.sparkSession)
    cells = seconds.cells(events, begun).persist()
    with planners(events.sparkSession, 2) as beside:
        by_second = beside.submit(seconds.by_second(events, begun).collect)
        completed = seconds.completed(cells).collect()
        counts = seconds.shares(completed)
        if not counts["rows"]:
            raise ReportError("there is no event, so there is nothing to judge")
        terms = Terms(started_us, target_us, series.shown_s(run.duration_s, started_us, counts))
        together = seconds.together(cells, counts["cells"])
        arrived = seconds.owned(together).persist()
        pacing = usual(events, terms)
        ranked = beside.submit(percentiles, events)
        journal = reading.result()
        if counts["in_sla"] < counts["events"]:
            known = tables(together, arrived, journal, counts["cells"])
            found = tail(events, known, terms, journal, pacing, lost=counts["lost"], pipeline=pipeline)
        rows, ranks = [row.asDict() for row in by_second.result()], ranked.result()
    return Essentials(
        terms=terms,
        counts=counts,
        seconds=rows,
        done=seconds.done(completed),
        ranks=ranks,
        cells=together,
        arrived=arrived,
        kept=(cells, arrived),
        journal=journal,
        usual=pacing,
        tail=found,
    )


def percentiles(events: DataFrame) -> Mapping[str, int]:
    """Return `Essentials.ranks`."""
    names = [name for name in measures.PARTS_PER_MILLION if name != "max"]
    values = events.select(f.lit("sla").alias("measure"), latency().alias("value_us"))
    ranks = ranks_within(values, "measure", names).collect()
    return ranks[0].asDict() if ranks else {}


def forget(first: Essentials) -> None:
    """Free the tables that Spark keeps."""
    for table in first.kept:
        table.unpersist()


def judge(
    run: RunInfo, started_us: int, events: DataFrame, reading: "Future[list[JournalEntry]]", *, now_us: int
) -> Result:
    """Return everything a report says. now_us: when it is made; later times cannot be. Else as `essentials`."""
    first = essentials(run, started_us, events, reading)
    try:
        pipeline = run.topology == "pipeline"
        more = measures.totals(events, pipeline=pipeline, more=checks(now_us)).collect()[0].asDict()
        return _result(run, replace(first, counts={**first.counts, **more}), events)
    finally:
        forget(first)


def _result(run: RunInfo, first: Essentials, events: DataFrame) -> Result:
    counts, terms, journal = first.counts, first.terms, first.journal
    others = measures.counted(measures.span_rows(events, [name for name in measures.SPANS if name != "sla"]), "measure")
    topics = _topics(counts)
    with planners(events.sparkSession, 1) as beside:
        groups = beside.submit(breakdowns, events, first.cells)
        ranks = {row["measure"]: row.asDict() for row in measures.nearest_ranks(others, "measure").collect()}
        ranks |= {"sla": first.ranks} if first.ranks else {}
        buckets = {row["bucket"]: row["events"] for row in measures.distribution(events).collect()}
        checked = integrity(events, counts, sum(topic.duplicates for topic in topics))
        bound = bound_of(run, first.arrived, first.usual)
        broken_down = groups.result()
    spent = cost(run, terms.started_us, journal, bound)
    sla, lateness, effects = ranks.get("sla", {}), _lateness(ranks.get("lateness", {})), _effects(counts)
    in_sla = counts["in_sla"] / counts["events"] if counts["events"] else 1.0
    problems = verdict.problems(run, counts["events"], counts["refused"], lateness)
    until_us = terms.started_us + round(run.duration_s * 1e6)
    plans = history.only(journal, PlanWritten)
    in_run = [plan for plan in plans if terms.started_us <= plan.at_us < until_us]
    return Result(
        run=run.run,
        scenario=str(run.scenario.get("name", "unnamed")),
        policy=run.policy,
        seed=run.seed,
        topology=run.topology,
        payment_partitions=run.payment_partitions,
        latency_target_s=run.latency_target_s,
        percentile=run.percentile,
        duration_s=run.duration_s,
        verdict=verdict.sentence(
            run,
            events=counts["events"],
            in_sla=in_sla,
            lost=counts["lost"],
            effects=effects,
            replica_minutes=spent.requested_replica_minutes,
            problems=problems,
            suspect=checked.suspect,
        ),
        valid=not problems,
        problems=problems,
        events=counts["events"],
        in_sla=in_sla,
        p50_s=_seconds(sla, "p50"),
        p99_s=_seconds(sla, "p99"),
        p999_s=_seconds(sla, "p999"),
        max_s=_seconds(sla, "max"),
        replica_minutes=spent.requested_replica_minutes,
        scale_ups=sum(plan.action == "up" for plan in in_run),
        scale_downs=sum(plan.action == "down" for plan in in_run),
        reassignments=sum(plan.action == "reassign" for plan in in_run),
        moved_partitions=spent.moved_partitions,
        lost=counts["lost"],
        refused=counts["refused"],
        dead_letters=counts["dead_letters"],
        duplicates=checked.duplicates,
        order_violations=checked.order_violations_partition,
        lateness=lateness,
        effects=effects,
        topics=topics,
        stages=tuple(_stage(name, ranks[name]) for name in STAGES if name in ranks),
        distribution=series.distribution(buckets, counts["events"]),
        series=series.series(first.seconds, first.done, journal, terms, None if bound is None else bound.replicas),
        decisions=history.decisions(plans, terms.started_us),
        failures=history.failures(history.only(journal, ReplicaChanged), terms.started_us),
        breakdowns=broken_down,
        tail=first.tail,
        heat=heat_map(first.arrived, terms),
        cost=spent,
        integrity=checked,
        rebalances=rebalances(run, terms.started_us, events, first.cells, journal, usual=first.usual),
        provenance=Provenance(
            command=run.command,
            commit=run.commit,
            machine=run.machine,
            versions=run.versions,
            started_us=terms.started_us,
            peak_memory_mib=run.peak_memory_mib,
        ),
    )


def _seconds(row: Mapping[str, Any], name: str) -> float | None:
    value_us = row.get(name)
    return None if value_us is None else value_us / 1e6


def _stage(name: str, row: Mapping[str, Any]) -> Stage:
    return Stage(
        stage=name,
        events=row["events"],
        p50_s=_seconds(row, "p50"),
        p90_s=_seconds(row, "p90"),
        p95_s=_seconds(row, "p95"),
        p99_s=_seconds(row, "p99"),
        p999_s=_seconds(row, "p999"),
        p9999_s=_seconds(row, "p9999"),
        max_s=_seconds(row, "max"),
    )


def _lateness(row: Mapping[str, Any]) -> Lateness:
    return Lateness(p50_s=_seconds(row, "p50"), p99_s=_seconds(row, "p99"), max_s=_seconds(row, "max"))


def _effects(counts: Mapping[str, int]) -> Effects:
    orders, once, doubled = counts["events"], counts["exactly_once"], counts["doubled"]
    return Effects(orders=orders, exactly_once=once, missing=orders - once - doubled, doubled=doubled)


def _topics(counts: Mapping[str, int]) -> tuple[TopicRecords, ...]:
    return tuple(
        TopicRecords(
            topic=topic.value,
            records=counts[f"{prefix}_records"],
            duplicates=counts[f"{prefix}_duplicates"],
            differing=counts[f"{prefix}_differing"],
        )
        for topic, prefix in COLUMN_OF.items()
        if counts[f"{prefix}_records"]
    )
