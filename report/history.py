"""Compute the history of the group from its journal: paid replicas, plans and lag."""

import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from contracts.journal import JournalEntry, PlanAlternative, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from report.result import Failure, NoChange, PlanDecision

MICROSECONDS: Final = 1_000_000
NO_END: Final = sys.maxsize
"""End of a span that is open at the end of the journal."""
STARTS_FROM: Final = frozenset({ReplicaChange.REQUESTED})
PAID_FROM: Final = STARTS_FROM | {ReplicaChange.STARTED, ReplicaChange.READY, ReplicaChange.ADOPTED}
"""Changes from which a replica is paid. A restarted controller adopts replicas without a recorded request."""
PAID_UNTIL: Final = frozenset({ReplicaChange.LEFT, ReplicaChange.DIED})
SERVES_FROM: Final = frozenset({ReplicaChange.READY})
SERVES_UNTIL: Final = PAID_UNTIL | {ReplicaChange.DRAINED}
STARTS_UNTIL: Final = PAID_UNTIL | SERVES_FROM


class Journal:
    """The entries of a journal, separated by kind and sorted by time. `bool` of an empty journal is False."""

    def __init__(self, entries: Iterable[JournalEntry] = ()) -> None:
        ordered = sorted(entries, key=lambda entry: entry.at_us)
        self.changes = [entry for entry in ordered if isinstance(entry, ReplicaChanged)]
        self.plans = [entry for entry in ordered if isinstance(entry, PlanWritten)]
        self.ticks = [entry for entry in ordered if isinstance(entry, TickRecord)]

    def __bool__(self) -> bool:
        return bool(self.changes or self.plans or self.ticks)


@dataclass(frozen=True, slots=True)
class Span:
    """Time for which a replica was paid for, ready or starting; µs since 1970."""

    replica: str
    from_us: int
    until_us: int


def paid_spans(changes: Iterable[ReplicaChanged]) -> list[Span]:
    """Return the spans from the request of each replica until it left or died."""
    return _spans(changes, PAID_FROM, PAID_UNTIL)


def ready_spans(changes: Iterable[ReplicaChanged]) -> list[Span]:
    """Return the spans in which each replica was ready."""
    return _spans(changes, SERVES_FROM, SERVES_UNTIL)


def starting_spans(changes: Iterable[ReplicaChanged], until_us: int) -> list[Span]:
    """Return the spans from the request of each replica until it was ready or gone; open spans end at `until_us`."""
    found = _spans(changes, STARTS_FROM, STARTS_UNTIL)
    ends = (until_us if span.until_us == NO_END else span.until_us for span in found)
    return [Span(span.replica, span.from_us, end) for span, end in zip(found, ends, strict=True) if end > span.from_us]


def startup_times_us(changes: Sequence[ReplicaChanged]) -> list[int]:
    """Return the start-up time of each replica that became ready, µs, from its request."""
    ready = {(entry.replica, entry.at_us) for entry in changes if entry.change in SERVES_FROM}
    spans = _spans(changes, STARTS_FROM, STARTS_UNTIL)
    return [span.until_us - span.from_us for span in spans if (span.replica, span.until_us) in ready]


def replica_minutes(spans: Iterable[Span], from_us: int, until_us: int) -> float:
    """Return the replica-minutes of the spans within [from_us, until_us). Integers are summed, so no digit is lost."""
    lengths = (min(span.until_us, until_us) - max(span.from_us, from_us) for span in spans)
    return sum(max(0, length_us) for length_us in lengths) / (60 * MICROSECONDS)


def count_each_second(spans: Sequence[Span], started_us: int, seconds: int) -> tuple[int, ...]:
    """Return the number of spans that are open at the beginning of each second."""
    times = (started_us + k * MICROSECONDS for k in range(seconds))
    return tuple(sum(span.from_us <= at_us < span.until_us for span in spans) for at_us in times)


def lag_each_second(ticks: Iterable[TickRecord], started_us: int, seconds: int) -> tuple[int | None, ...]:
    """Return the lag of the group (events) at the last tick of each second; None if no tick observed it."""
    lags = [((tick.at_us - started_us) // MICROSECONDS, tick.partitions) for tick in ticks if tick.partitions]
    lag_at = {second: sum(partition.lag for partition in partitions) for second, partitions in lags}
    return tuple(lag_at.get(second) for second in range(seconds))


def decisions(journal: Journal, started_us: int) -> tuple[PlanDecision, ...]:
    """Return the plans, with the alternatives that the policy considered, and times since the start of the run."""

    def alternatives_of(plan: PlanWritten) -> tuple[PlanAlternative, ...]:
        newest = bisect_right(journal.ticks, plan.at_us, key=lambda tick: tick.at_us) - 1
        known = newest >= 0 and journal.ticks[newest].reason == plan.reason
        return journal.ticks[newest].alternatives if known else ()

    return tuple(
        PlanDecision(
            at_s=(plan.at_us - started_us) / MICROSECONDS,
            **{name: getattr(plan, name) for name in ("epoch", "action", "moved", "reason")},
            replicas=len(plan.replicas),
            alternatives=alternatives_of(plan),
        )
        for plan in journal.plans
    )


def no_changes(ticks: Iterable[TickRecord], started_us: int) -> tuple[NoChange, ...]:
    """Return the ticks that changed nothing; consecutive ones with the same reason become one entry."""

    def decision(tick: TickRecord) -> tuple[str, str]:
        return tick.action, f"{tick.reason}: {tick.missing}" if tick.missing else tick.reason

    each = ((*key, list(same)) for key, same in groupby(ticks, decision))
    return tuple(
        NoChange(at_s=(same[0].at_us - started_us) / MICROSECONDS, ticks=len(same), reason=reason)
        for action, reason, same in each
        if action == "no-change"
    )


def failures(changes: Iterable[ReplicaChanged], started_us: int) -> tuple[Failure, ...]:
    """Return the deaths and failed starts of replicas."""
    return tuple(
        Failure(
            at_s=(entry.at_us - started_us) / MICROSECONDS,
            replica=entry.replica,
            change=entry.change.value,
            detail=entry.detail,
        )
        for entry in changes
        if entry.change in {ReplicaChange.DIED, ReplicaChange.START_FAILED}
    )


def _spans(
    changes: Iterable[ReplicaChanged], begin: frozenset[ReplicaChange], end: frozenset[ReplicaChange]
) -> list[Span]:
    since: dict[str, int] = {}
    closed: list[Span] = []
    for change in sorted(changes, key=lambda change: change.at_us):
        if change.change in begin:
            since.setdefault(change.replica, change.at_us)
        elif change.change in end and change.replica in since:
            closed.append(Span(change.replica, since.pop(change.replica), change.at_us))
    return closed + [Span(replica, from_us, NO_END) for replica, from_us in since.items()]
