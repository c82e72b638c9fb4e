"""events.parquet and the journal → Result: three Spark jobs, then plain arithmetic on a few hundred numbers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame

from bench.latency_job import group_history as history
from bench.latency_job import verdict
from bench.latency_job.measures import BUCKETS_PER_DECADE, measured_rows, nearest_ranks, order_violations, totals
from bench.latency_job.schema import COLUMN_OF
from bench.report.result import STAGES, Distribution, Effects, Lateness, Provenance, Result, Series, Stage, TopicRecords
from bench.run_info import RunInfo
from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged, TickRecord

DRAIN_SHOWN_S: Final = 600
"""Seconds after the workload that the series may cover: one record with an absurd time must not make a million."""

Ranks = Mapping[tuple[str, int], Mapping[str, Any]]
"""(measure, slot) → events and percentiles in µs."""


def judge(run: RunInfo, started_us: int, events: DataFrame, journal: Sequence[JournalEntry]) -> Result:
    """Return everything a report says. events: as in events.parquet. started_us: second 0 of the run."""
    counts = (
        totals(events, round(run.latency_target_s * 1e6), pipeline=run.topology == "pipeline").collect()[0].asDict()
    )
    ranked = nearest_ranks(measured_rows(events, started_us)).collect()
    ranks: Ranks = {(row["measure"], row["slot"]): row.asDict() for row in ranked}
    violations = order_violations(events).collect()[0]["order_violations"]

    topics = _topics(counts)
    stages = tuple(_stage(name, ranks[name, 0]) for name in STAGES if (name, 0) in ranks)
    sla = ranks.get(("sla", 0), {})
    lateness = _lateness(ranks.get(("lateness", 0), {}))
    effects = _effects(counts)
    in_sla = counts["in_sla"] / counts["events"] if counts["events"] else 1.0
    problems = verdict.problems(run, counts["events"], counts["refused"], lateness)
    paid = history.paid(history.only(journal, ReplicaChanged))
    until_us = started_us + round(run.duration_s * 1e6)
    replica_minutes = history.replica_minutes(paid, started_us, until_us) if paid else None
    in_run = [plan for plan in history.only(journal, PlanWritten) if started_us <= plan.at_us < until_us]
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
            replica_minutes=replica_minutes,
            problems=problems,
        ),
        valid=not problems,
        problems=problems,
        events=counts["events"],
        in_sla=in_sla,
        p50_s=_seconds(sla, "p50"),
        p99_s=_seconds(sla, "p99"),
        p999_s=_seconds(sla, "p999"),
        max_s=_seconds(sla, "max"),
        replica_minutes=replica_minutes,
        scale_ups=sum(plan.action == "up" for plan in in_run),
        scale_downs=sum(plan.action == "down" for plan in in_run),
        reassignments=sum(plan.action == "reassign" for plan in in_run),
        moved_partitions=sum(plan.moved for plan in in_run),
        lost=counts["lost"],
        refused=counts["refused"],
        dead_letters=counts["dead_letters"],
        duplicates=sum(topic.duplicates for topic in topics),
        order_violations=violations,
        lateness=lateness,
        effects=effects,
        topics=topics,
        stages=stages,
        distribution=_distribution(ranks, counts["events"]),
        series=_series(ranks, journal, started_us, math.ceil(run.duration_s)),
        decisions=history.decisions(history.only(journal, PlanWritten), started_us),
        failures=history.failures(history.only(journal, ReplicaChanged), started_us),
        provenance=Provenance(
            command=run.command,
            commit=run.commit,
            machine=run.machine,
            versions=run.versions,
            started_us=started_us,
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


def _distribution(ranks: Ranks, total: int) -> Distribution:
    """Cumulate the buckets: at each upper edge stands the exact share of `total` events done within it."""
    buckets = sorted((slot, row["events"]) for (measure, slot), row in ranks.items() if measure == "distribution")
    share, latency_s, below = [], [], 0
    for slot, count in buckets:
        below += count
        share.append(below / total)
        latency_s.append(10 ** (slot / BUCKETS_PER_DECADE) / 1e6)
    return Distribution(share=tuple(share), latency_s=tuple(latency_s))


def _series(ranks: Ranks, journal: Sequence[JournalEntry], started_us: int, duration: int) -> Series:
    """Return the seconds of the workload and of the drain after it."""
    slots = [slot for (measure, slot) in ranks if measure in {"arrivals", "done"}]
    seconds = range(min(max([duration, *(slot + 1 for slot in slots)]), duration + DRAIN_SHOWN_S))
    changes = history.only(journal, ReplicaChanged)
    unknown = (None,) * len(seconds)

    def count(measure: str) -> tuple[int, ...]:
        return tuple(ranks.get((measure, k), {}).get("events", 0) for k in seconds)

    def latency(name: str) -> tuple[float | None, ...]:
        return tuple(_seconds(ranks.get(("second", k), {}), name) for k in seconds)

    def replicas(spans: Sequence[history.Span]) -> tuple[int | None, ...]:
        return history.count_each_second(spans, started_us, len(seconds)) if changes else unknown

    return Series(
        arrivals=count("arrivals"),
        done=count("done"),
        p50_s=latency("p50"),
        p99_s=latency("p99"),
        max_s=latency("max"),
        requested_replicas=replicas(history.paid(changes)),
        ready_replicas=replicas(history.serving(changes)),
        lag=history.lag_each_second(history.only(journal, TickRecord), started_us, len(seconds)),
    )
