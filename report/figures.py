"""Event rows and journal → Result: every figure of a report, live or simulated, from files or through Spark."""

from collections.abc import Iterable
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
from report.run_info import EVENTS, RunInfo, load_run
from report.table import Rows
from report.terms import Terms, usual
from report.wording import duration, several, share

OF_THE_RUN: Final = (
    "run", "policy", "seed", "topology", "world", "payment_partitions", "latency_target_s", "percentile", "duration_s",
)  # fmt: skip
OF_ITS_MAKING: Final = ("command", "commit", "machine", "versions", "peak_memory_mib", "cores_full_s")
LATENESS_SHARE: Final = 0.05
"""Of the latency target; a generator whose p99 is later than that measures itself."""


def measure(run: RunInfo, rows: Rows, entries: Iterable[JournalEntry], *, now_us: int) -> Result:
    """Return everything a report says about a run that has begun. now_us: when it is made; later times cannot be.

    Raises ReportError for a run without events.
    """
    journal, started_us = Journal(entries), run.started_us or 0
    terms = Terms(started_us, round(run.latency_target_s * 1e6), pipeline=run.topology == "pipeline")
    cells = seconds.cells(rows, terms)
    shares = seconds.shares(cells)
    if not shares.rows:
        raise ReportError("there is no event, so there is nothing to report on")
    terms = replace(terms, shown_s=seconds.shown_s(run.duration_s, started_us, shares.last_us))
    terms = replace(terms, usual=usual(rows, terms))
    arrived = seconds.owned(cells)
    deaths = Deaths(journal)
    owners = stays(seconds.served(cells), deaths.times)
    tail = None
    if rows.known.issuperset(stored.SERVED):
        tail = explain(rows, owners, arrived, terms, journal, deaths=deaths, shares=shares)

    counts = totals(rows, pipeline=terms.pipeline, now_us=now_us) | {"events": shares.events}
    lost = shares.lost if shares.lost or stored.ASKED in rows.known else None
    checked = integrity(rows, counts, lost=lost, key_order=run.keeps_key_order)
    counted, letters = stored.COUNTED in rows.known, stored.LETTERS in rows.known
    orders = effects(counts) if counted and run.world != "simulated" else None
    ranks = percentiles.measured(rows)
    late_s = Lateness(**{f"{rank}_s": ranks["lateness"].rank(rank) for rank in ("p50", "p99", "max")})
    packing = packing_of(run, arrived, terms.usual)
    spent = cost(run, started_us, journal, packing)
    problems = invalid_because(run, shares.events, shares.refused, late_s)
    until_us = started_us + round(run.duration_s * 1e6)
    taken = [plan.action for plan in journal.plans if started_us <= plan.at_us < until_us]
    result = Result(
        **{name: getattr(run, name) for name in OF_THE_RUN},
        scenario=str(run.scenario.get("name", "unnamed")),
        verdict="",
        valid=not problems,
        problems=problems,
        events=shares.events,
        in_sla=shares.in_sla / shares.events if shares.events else 1.0,
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
        refused=shares.refused if letters else None,
        dead_letters=counts["dead_letters"] if letters else None,
        duplicates=checked.duplicates,
        order_violations=checked.order_violations_partition,
        lateness=late_s,
        effects=orders,
        topics=topics(counts) if counted else (),
        stages=percentiles.stages(ranks),
        distribution=percentiles.distribution(ranks["sla"], shares.events),
        series=seconds.series(rows, shares.done, journal, terms, packing),
        decisions=history.decisions(journal, started_us),
        failures=history.failures(journal.changes, started_us),
        breakdowns=percentiles.breakdowns(rows, cells),
        tail=tail,
        heat=seconds.heat_map(arrived, terms),
        cost=spent,
        integrity=checked,
        rebalances=rebalances(run, rows, owners, terms, journal, deaths=deaths),
        starts=starts(journal),
        provenance=Provenance(started_us=started_us, **{name: getattr(run, name) for name in OF_ITS_MAKING}),
    )
    return msgspec.structs.replace(result, verdict=verdict_of(result))


def invalid_because(run: RunInfo, events: int, refused: int, lateness: Lateness) -> tuple[str, ...]:
    """Return why the measurement does not stand, one clause each; empty when it does.

    events, refused: distinct events found in the topics; they do not overlap.
    """
    found = []
    if events == 0:
        found.append(f"every one of {refused:,} events was refused")
    allowed_s = LATENESS_SHARE * run.latency_target_s
    if lateness.p99_s is not None and lateness.p99_s > allowed_s:
        late = f"p99 of placed − intended is {duration(lateness.p99_s)}, allowed are {duration(allowed_s)}"
        found.append(f"the generator was late: {late} (5 % of the target)")
    if run.interrupted:
        found.append("the run was interrupted")
    if events + refused < run.events_scheduled:
        found.append(f"only {events + refused:,} of {run.events_scheduled:,} scheduled events were produced")
    return tuple(found)


def verdict_of(result: Result) -> str:
    """Return the verdict in one sentence, validity first."""
    kept = "kept" if result.kept else "missed"
    where = " in simulation" if result.world == "simulated" else ""
    done = f"{share(result.in_sla)} of {result.events:,} events were done within {duration(result.latency_target_s)}"
    promise = f"promise {kept}{where}: {done} (promised {share(result.percentile)})"
    cost = "" if result.replica_minutes is None else f" for {result.replica_minutes:.2f} replica-minutes"
    suspect = result.integrity.suspect if result.integrity else ()
    beside = [what for what in suspect if not what.endswith(" lost")]
    marked = f"; marked as suspect: {', '.join(beside)}" if beside else ""
    body = "; ".join([promise + cost, *_orders(result.lost, result.effects)]) + marked + "."
    if result.problems:
        return f"Not a valid measurement, because {' and '.join(result.problems)}; as measured, {body}"
    return body[0].upper() + body[1:]


def _orders(lost: int | None, effects: Effects | None) -> list[str]:
    told = [] if lost is None else [f"{several(lost, 'event')} lost" if lost else "nothing was lost"]
    if effects and effects.exactly_once == effects.orders:
        told.append("every order had each of its effects exactly once")
    elif effects:
        told += [f"{several(effects.missing, 'order')} without all effects"] if effects.missing else []
        told += [f"{several(effects.doubled, 'order')} with an effect twice"] if effects.doubled else []
    return [", ".join(told)] if told else []


def needs_spark(events: Path, master: str) -> bool:
    """Return whether a run's events are still to be read from topics, or too many for one process.

    On a cluster's `master` any number is too many.
    """
    most = stored.MOST_IN_MEMORY if master.startswith("local") else 0
    return not stored.is_whole(events) or stored.count(events) > most


def report_stored(folder: Path) -> Result:
    """Report on the run in `folder` and write result.json there. Raises ReportError."""
    run = load_run(folder)
    try:
        result = measure(run, stored.load_events(folder / EVENTS), stored.load_journal(folder), now_us=clock_us())
    except ReportError as refused:
        raise ReportError(f"{folder}: {refused}") from refused
    save(result, folder)
    return result


def save(result: Result, folder: Path) -> None:
    """Write folder/result.json. Raises ReportError."""
    try:
        result.save(folder)
    except OSError as refused:
        raise ReportError(f"{folder / RESULT_FILE}: cannot be written ({refused.strerror or refused})") from refused
