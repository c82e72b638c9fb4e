"""Compute the Result of a run from its event rows and journal, for live and simulated runs, with or without Spark."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from contracts.clock import now_us as clock_us
from contracts.journal import JournalEntry
from report import ReportError, history, percentiles, seconds, stored
from report.cost import cost, packing_of, starts
from report.history import Journal
from report.integrity import effects, integrity, topics, totals
from report.lateness import explain
from report.rebalances import Deaths, rebalances, stays
from report.result import RESULT_FILE, Effects, Lateness, Provenance, Result
from report.run_info import EVENTS, RunInfo, load_run, with_time_range
from report.table import Rows
from report.terms import Terms, typical
from report.wording import duration, plural, share

RUN_FIELDS: Final = (
    "run", "policy", "seed", "topology", "world", "payment_partitions", "latency_target_s", "percentile", "duration_s",
)  # fmt: skip
PROVENANCE_FIELDS: Final = tuple(name for name in Provenance.__struct_fields__ if name != "started_us")
MAX_GENERATOR_DELAY_SHARE: Final = 0.05
"""A run is invalid if the p99 delay of its generator is a larger share of the latency target than this."""


def measure(run: RunInfo, rows: Rows, entries: Iterable[JournalEntry], *, now_us: int) -> Result:
    """Return all figures of a run that has started. now_us: time of the report, µs; later timestamps are errors.

    Raises ReportError for a run without events.
    """
    journal, started_us = Journal(entries), run.started_us or 0
    terms = Terms(started_us, round(run.latency_target_s * 1e6), pipeline=run.topology == "pipeline")
    cells = seconds.cells(rows, terms)
    event_counts = seconds.event_counts(cells)
    if not event_counts.rows:
        raise ReportError("it has no events, so there is nothing to report")
    terms = replace(terms, shown_s=seconds.shown_s(run.duration_s, started_us, event_counts.last_us))
    terms = replace(terms, typical=typical(rows, terms))
    arrived = seconds.owned_arrivals(cells)
    deaths = Deaths(journal)
    owners = stays(seconds.served(cells), deaths.times)
    tail = None
    if rows.known.issuperset(stored.REPLICA_COLUMNS):
        tail = explain(rows, owners, arrived, terms, journal, deaths=deaths, totals=event_counts)

    counts = totals(rows, pipeline=terms.pipeline, now_us=now_us) | {"events": event_counts.events}
    lost = event_counts.lost if event_counts.lost or stored.REQUESTED_COUNT in rows.known else None
    checked = integrity(rows, counts, lost=lost, key_order=run.keeps_key_order)
    counted, letters = stored.SETTLED_COUNT in rows.known, stored.DEAD_LETTERS_COLUMN in rows.known
    orders = effects(counts) if counted and run.world != "simulated" else None
    ranks = percentiles.measure_spans(rows)
    late_s = Lateness(**{f"{rank}_s": ranks["lateness"].rank(rank) for rank in ("p50", "p99", "max")})
    packing = packing_of(run, arrived, terms.typical)
    spent = cost(run, started_us, journal, packing)
    problems = validity_problems(run, event_counts.events, event_counts.refused, late_s)
    until_us = started_us + round(run.duration_s * 1e6)
    taken = [plan.action for plan in journal.plans if started_us <= plan.at_us < until_us]
    result = Result(
        **{name: getattr(run, name) for name in RUN_FIELDS},
        scenario=str(run.scenario.get("name", "unnamed")),
        verdict="",
        valid=not problems,
        problems=problems,
        events=event_counts.events,
        in_sla=event_counts.in_sla / event_counts.events if event_counts.events else 1.0,
        p50_s=ranks["sla"].rank("p50"),
        p99_s=ranks["sla"].rank("p99"),
        p999_s=ranks["sla"].rank("p999"),
        max_s=ranks["sla"].rank("max"),
        replica_minutes=spent.requested_replica_minutes,
        scale_ups=taken.count("up") if journal else None,
        scale_downs=taken.count("down") if journal else None,
        reassignments=taken.count("reassign") if journal else None,
        moved_partitions=spent.moved_partitions,
        lost=lost,
        refused=event_counts.refused if letters else None,
        dead_letters=counts["dead_letters"] if letters else None,
        duplicates=checked.duplicates,
        order_violations=checked.order_violations_partition,
        lateness=late_s,
        effects=orders,
        topics=topics(counts) if counted else (),
        stages=percentiles.stages(ranks),
        distribution=percentiles.distribution(ranks["sla"], event_counts.events),
        series=seconds.series(rows, event_counts.done, journal, terms, packing),
        decisions=history.decisions(journal, started_us),
        no_changes=history.no_changes(journal.ticks, started_us),
        failures=history.failures(journal.changes, started_us),
        breakdowns=percentiles.breakdowns(rows, cells),
        tail=tail,
        heat=seconds.heat_map(arrived, terms),
        cost=spent,
        integrity=checked,
        rebalances=rebalances(run, rows, owners, terms, journal, deaths=deaths),
        starts=starts(journal),
        provenance=Provenance(started_us=started_us, **{name: getattr(run, name) for name in PROVENANCE_FIELDS}),
    )
    return msgspec.structs.replace(result, verdict=describe_verdict(result))


def validity_problems(run: RunInfo, events: int, refused: int, lateness: Lateness) -> tuple[str, ...]:
    """Return one clause for each reason why the measurement is not valid; empty if it is valid.

    events: number of distinct events that were not refused. refused: number of distinct events that were refused.
    """
    found = []
    if events == 0:
        found.append(f"all {refused:,} events were refused")
    allowed_s = MAX_GENERATOR_DELAY_SHARE * run.latency_target_s
    if lateness.p99_s is not None and lateness.p99_s > allowed_s:
        late = f"the p99 of its delay is {duration(lateness.p99_s)}, but may be at most {duration(allowed_s)}"
        found.append(f"the generator was late: {late} (5 % of the target)")
    if run.interrupted:
        found.append("the run was interrupted")
    if events + refused < run.events_scheduled:
        found.append(f"only {events + refused:,} of {run.events_scheduled:,} scheduled events were produced")
    return tuple(found)


def describe_verdict(result: Result) -> str:
    """Return the verdict in one sentence. An invalid measurement is named first."""
    world = " in simulation" if result.world == "simulated" else ""
    done = f"{share(result.in_sla)} of {result.events:,} events were done within {duration(result.latency_target_s)}"
    slo = f"SLO {'met' if result.slo_met else 'not met'}{world}: {done} (target {share(result.percentile)})"
    cost = "" if result.replica_minutes is None else f" for {result.replica_minutes:.2f} replica-minutes"
    suspect = result.integrity.suspect if result.integrity else ()
    others = [error for error in suspect if not error.endswith(" lost")]
    errors = f"; suspect: {', '.join(others)}" if others else ""
    count = len(result.provenance.interventions)
    acted = f"; {plural(count, 'intervention')} by an operator" if count else ""
    body = "; ".join([slo + cost, *_describe_effects(result.lost, result.effects)]) + acted + errors + "."
    if result.problems:
        return f"Not a valid measurement, because {' and '.join(result.problems)}; as measured: {body}"
    return body


def _describe_effects(lost: int | None, effects: Effects | None) -> list[str]:
    clauses = [] if lost is None else [f"{plural(lost, 'event')} lost" if lost else "no event was lost"]
    if effects and effects.exactly_once == effects.orders:
        clauses.append("every order had each of its effects exactly once")
    elif effects:
        clauses += [f"{plural(effects.missing, 'order')} without all effects"] if effects.missing else []
        clauses += [f"{plural(effects.doubled, 'order')} with an effect twice"] if effects.doubled else []
    return [", ".join(clauses)] if clauses else []


def report_stored(folder: Path) -> Result:
    """Report on the run in `folder` from its Parquet files, and write result.json there. Raises ReportError."""
    return report_rows(folder, load_run(folder), str(folder), lambda: stored.load_events(folder / EVENTS))


def report_rows(
    folder: Path, run: RunInfo, source: str, load: Callable[[], Rows], entries: Iterable[JournalEntry] | None = None
) -> Result:
    """Report on rows, and write result.json into `folder`. Raises ReportError.

    source: name of the rows in errors. entries: those of the journal; None: read the journal in `folder`.
    """
    report_us = clock_us()
    try:
        rows = load()
        if run.started_us is None:
            run = with_time_range(run, rows, now_us=report_us)
        entries = stored.load_journal(folder) if entries is None else entries
        result = measure(run, rows, entries, now_us=report_us)
    except ReportError as refused:
        raise ReportError(f"{source}: {refused}") from refused
    try:
        result.save(folder)
    except OSError as refused:
        raise ReportError(f"{folder / RESULT_FILE}: cannot be written ({refused.strerror or refused})") from refused
    return result
