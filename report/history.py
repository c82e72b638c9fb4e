"""The group by its journal: replicas paid for, plans written, lag. Plain Python: a journal is small."""

import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.journal import JournalEntry, PlanAlternative, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from report.result import Failure, PlanDecision

MICROSECONDS: Final = 1_000_000
OPEN: Final = sys.maxsize
"""End of a span that the journal does not end."""
STARTS_FROM: Final = frozenset({ReplicaChange.REQUESTED})
PAID_FROM: Final = STARTS_FROM | {ReplicaChange.STARTED, ReplicaChange.READY, ReplicaChange.ADOPTED}
"""Normally REQUESTED; the others too, because a controller that was restarted adopts what it did not request."""
PAID_UNTIL: Final = frozenset({ReplicaChange.LEFT, ReplicaChange.DIED})
SERVES_FROM: Final = frozenset({ReplicaChange.READY})
SERVES_UNTIL: Final = PAID_UNTIL | {ReplicaChange.DRAINED}
STARTS_UNTIL: Final = PAID_UNTIL | SERVES_FROM


class Journal:
    """The entries of a run's journal by kind, each kind by time; without entries it is false."""

    def __init__(self, entries: Iterable[JournalEntry] = ()) -> None:
        every = sorted(entries, key=lambda entry: entry.at_us)
        self.changes = [entry for entry in every if isinstance(entry, ReplicaChanged)]
        self.plans = [entry for entry in every if isinstance(entry, PlanWritten)]
        self.ticks = [entry for entry in every if isinstance(entry, TickRecord)]

    def __bool__(self) -> bool:
        return bool(self.changes or self.plans or self.ticks)


@dataclass(frozen=True, slots=True)
class Span:
    """A replica was paid for (or served, or started) from `from_us` until `until_us`."""

    replica: str
    from_us: int
    until_us: int


def paid(changes: Iterable[ReplicaChanged]) -> list[Span]:
    """Return when each replica cost money: from its request until it left or died."""
    return _spans(changes, PAID_FROM, PAID_UNTIL)


def serving(changes: Iterable[ReplicaChanged]) -> list[Span]:
    """Return when each replica was ready."""
    return _spans(changes, SERVES_FROM, SERVES_UNTIL)


def starting(changes: Iterable[ReplicaChanged], until_us: int) -> list[Span]:
    """Return when each replica was requested and not yet ready; if it never was, until `until_us`."""
    found = _spans(changes, STARTS_FROM, STARTS_UNTIL)
    closed = (Span(one.replica, one.from_us, until_us if one.until_us == OPEN else one.until_us) for one in found)
    return [one for one in closed if one.until_us > one.from_us]


def started_us(changes: Iterable[ReplicaChanged]) -> list[int]:
    """Return how long each replica took from its request until it was ready, of those that became ready."""
    requested: dict[str, int] = {}
    took = []
    for one in sorted(changes, key=lambda change: change.at_us):
        if one.change in STARTS_FROM:
            requested[one.replica] = one.at_us
        elif one.change in STARTS_UNTIL and one.replica in requested:
            since = requested.pop(one.replica)
            took += [one.at_us - since] if one.change in SERVES_FROM else []
    return took


def replica_minutes(spans: Iterable[Span], from_us: int, until_us: int) -> float:
    """Return ∫ replicas dt / 60 over [from_us, until_us), in minutes. Exact: whole microseconds are summed."""
    lengths = (min(span.until_us, until_us) - max(span.from_us, from_us) for span in spans)
    return sum(max(0, length_us) for length_us in lengths) / (60 * MICROSECONDS)


def count_each_second(spans: Sequence[Span], started_us: int, seconds: int) -> tuple[int, ...]:
    """Return how many spans are open as each second begins."""
    times = (started_us + k * MICROSECONDS for k in range(seconds))
    return tuple(sum(span.from_us <= at_us < span.until_us for span in spans) for at_us in times)


def lag_each_second(ticks: Iterable[TickRecord], started_us: int, seconds: int) -> tuple[int | None, ...]:
    """Return the group's lag (events) at the last tick of each second; None where no tick could see it."""
    saw = [((tick.at_us - started_us) // MICROSECONDS, tick.partitions) for tick in ticks if tick.partitions]
    seen = {second: sum(partition.lag for partition in partitions) for second, partitions in saw}
    return tuple(seen.get(second) for second in range(seconds))


def decisions(journal: Journal, started_us: int) -> tuple[PlanDecision, ...]:
    """Return every plan, with its time since the start of the run and what was weighed at its tick."""

    def weighed(plan: PlanWritten) -> tuple[PlanAlternative, ...]:
        newest = bisect_right(journal.ticks, plan.at_us, key=lambda tick: tick.at_us) - 1
        known = newest >= 0 and journal.ticks[newest].reason == plan.reason
        return journal.ticks[newest].alternatives if known else ()

    return tuple(
        PlanDecision(
            at_s=(plan.at_us - started_us) / MICROSECONDS,
            **{name: getattr(plan, name) for name in ("epoch", "action", "moved", "reason")},
            replicas=len(plan.replicas),
            alternatives=weighed(plan),
        )
        for plan in journal.plans
    )


def failures(changes: Iterable[ReplicaChanged], started_us: int) -> tuple[Failure, ...]:
    """Return what went wrong with replicas."""
    return tuple(
        Failure(
            at_s=(one.at_us - started_us) / MICROSECONDS,
            replica=one.replica,
            change=one.change.value,
            detail=one.detail,
        )
        for one in changes
        if one.change in {ReplicaChange.DIED, ReplicaChange.START_FAILED}
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
    return closed + [Span(replica, from_us, OPEN) for replica, from_us in since.items()]
