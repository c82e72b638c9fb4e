"""Events and journal → Result: Spark makes small tables, the rest is plain arithmetic."""

from collections.abc import Sequence

from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged
from report.result import Provenance, Result
from report.run_info import RunInfo
from report.spark import ReportError, percentiles, seconds, verdict
from report.spark import group_history as history
from report.spark.cost import bound_of, cost
from report.spark.explain import explain
from report.spark.files import Events
from report.spark.integrity import effects, integrity, topics, totals
from report.spark.rebalances import rebalances
from report.spark.terms import Terms, usual


def measure(run: RunInfo, events: Events, journal: Sequence[JournalEntry], *, now_us: int) -> Result:
    """Return everything a report says about a run that has begun. now_us: when it is made; later times cannot be.

    Raises ReportError for a run without events.
    """
    started_us, target_us = run.started_us or 0, round(run.latency_target_s * 1e6)
    rows, pipeline = events.rows, run.topology == "pipeline"
    cells = seconds.cells(rows, Terms(started_us, target_us)).persist()
    shares = seconds.shares(cells)
    if not shares.rows:
        raise ReportError("there is no event, so there is nothing to report on")
    terms = Terms(started_us, target_us, seconds.shown_s(run.duration_s, started_us, shares.last_us))
    arrived = seconds.owned(cells).persist()
    pace = usual(rows, terms)
    tail = None
    if events.served:
        tail = explain(rows, cells, arrived, terms, journal, usual=pace, shares=shares, pipeline=pipeline)

    counts = totals(rows, pipeline=pipeline, now_us=now_us) | {"events": shares.events, "lost": shares.lost}
    checked = integrity(rows, counts)
    orders = effects(counts) if events.counted else None
    ranks = percentiles.measured(rows)
    late_s = percentiles.lateness(ranks)
    bound = bound_of(run, arrived, pace)
    spent = cost(run, started_us, journal, bound)
    in_sla = shares.in_sla / shares.events if shares.events else 1.0
    problems = verdict.problems(run, shares.events, shares.refused, late_s)
    plans = history.only(journal, PlanWritten)
    until_us = started_us + round(run.duration_s * 1e6)
    taken = [plan.action for plan in plans if started_us <= plan.at_us < until_us]
    result = Result(
        run=run.run,
        scenario=str(run.scenario.get("name", "unnamed")),
        policy=run.policy,
        seed=run.seed,
        topology=run.topology,
        world=run.world,
        payment_partitions=run.payment_partitions,
        latency_target_s=run.latency_target_s,
        percentile=run.percentile,
        duration_s=run.duration_s,
        verdict=verdict.sentence(
            run,
            events=shares.events,
            in_sla=in_sla,
            lost=shares.lost,
            effects=orders,
            replica_minutes=spent.requested_replica_minutes,
            problems=problems,
            suspect=checked.suspect,
        ),
        valid=not problems,
        problems=problems,
        events=shares.events,
        in_sla=in_sla,
        p50_s=percentiles.seconds(ranks, "sla", "p50"),
        p99_s=percentiles.seconds(ranks, "sla", "p99"),
        p999_s=percentiles.seconds(ranks, "sla", "p999"),
        max_s=percentiles.seconds(ranks, "sla", "max"),
        replica_minutes=spent.requested_replica_minutes,
        scale_ups=taken.count("up"),
        scale_downs=taken.count("down"),
        reassignments=taken.count("reassign"),
        moved_partitions=spent.moved_partitions,
        lost=shares.lost,
        refused=shares.refused,
        dead_letters=counts["dead_letters"],
        duplicates=checked.duplicates,
        order_violations=checked.order_violations_partition,
        lateness=late_s,
        effects=orders,
        topics=topics(counts) if events.counted else (),
        stages=percentiles.stages(ranks),
        distribution=percentiles.distribution(rows, shares.events),
        series=seconds.series(rows, shares.done, journal, terms, None if bound is None else bound.replicas),
        decisions=history.decisions(journal, started_us),
        failures=history.failures(history.only(journal, ReplicaChanged), started_us),
        breakdowns=percentiles.breakdowns(rows, cells),
        tail=tail,
        heat=seconds.heat_map(arrived, terms),
        cost=spent,
        integrity=checked,
        rebalances=rebalances(run, started_us, rows, cells, journal, usual=pace),
        provenance=Provenance(
            command=run.command,
            commit=run.commit,
            machine=run.machine,
            versions=run.versions,
            started_us=started_us,
            peak_memory_mib=run.peak_memory_mib,
        ),
    )
    for table in (arrived, cells):
        table.unpersist()
    return result
