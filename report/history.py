"""What the journal says of the group: replicas paid for, plans written, lag seen. Plain Python: a journal is small."""

import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from contracts.journal import AlternativeWeighed, JournalEntry, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from report.result import DecisionMade, Failure

MICROSECONDS: Final = 1_000_000
STARTS_FROM: Final = frozenset({ReplicaChange.REQUESTED})
PAID_FROM: Final = STARTS_FROM | {ReplicaChange.STARTED, ReplicaChange.READY, ReplicaChange.ADOPTED}
"""Normally REQUESTED; the others too, because a controller that was restarted adopts what it did not request."""
PAID_UNTIL: Final = frozenset({ReplicaChange.LEFT, ReplicaChange.DIED})
SERVES_FROM: Final = frozenset({ReplicaChange.READY})
SERVES_UNTIL: Final = PAID_UNTIL | {ReplicaChange.DRAINED}
STARTS_UNTIL: Final = PAID_UNTIL | SERVES_FROM

E = TypeVar("E", TickRecord, PlanWritten, ReplicaChanged)


@dataclass(frozen=True, slots=True)
class Span:
    """A replica was paid for (or served) from `from_us` until `until_us`; None: to the end of the journal."""

    replica: str
    from_us: int
    until_us: int | None

    @property
    def took_us(self) -> int:
        """Its length; 0 of one that is open."""
        return (self.until_us or self.from_us) - self.from_us


def only(entries: Iterable[JournalEntry], kind: type[E]) -> list[E]:
    """Return the entries of one kind, by time."""
    return sorted((entry for entry in entries if isinstance(entry, kind)), key=lambda entry: entry.at_us)


def paid(changes: Iterable[ReplicaChanged]) -> list[Span]:
    """Return when each replica cost money: from its request until it left or died."""
    return _spans(changes, PAID_FROM, PAID_UNTIL)


def serving(changes: Iterable[ReplicaChanged]) -> list[Span]:
    """Return when each replica was ready."""
    return _spans(changes, SERVES_FROM, SERVES_UNTIL)


def starting(changes: Iterable[ReplicaChanged], until_us: int) -> list[Span]:
    """Return when each replica was asked for and not yet ready; what never became ready or went, until `until_us`."""
    found = _spans(changes, STARTS_FROM, STARTS_UNTIL)
    closed = ((one.replica, one.from_us, until_us if one.until_us is None else one.until_us) for one in found)
    return [Span(*one) for one in closed if one[2] > one[1]]


def started_us(changes: Iterable[ReplicaChanged]) -> list[int]:
    """Return how long each replica took from asked for to ready, of those that became ready."""
    asked: dict[str, int] = {}
    took = []
    for one in sorted(changes, key=lambda change: change.at_us):
        if one.change in STARTS_FROM:
            asked[one.replica] = one.at_us
        elif one.change in STARTS_UNTIL and one.replica in asked:
            since = asked.pop(one.replica)
            took += [one.at_us - since] if one.change in SERVES_FROM else []
    return took


def union(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """Return the times that closed spans cover, disjoint, in order."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted((span.from_us, span.from_us + span.took_us) for span in spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def replica_minutes(spans: Iterable[Span], from_us: int, until_us: int) -> float:
    """Return ∫ replicas dt / 60 over [from_us, until_us), in minutes. Exact: whole microseconds are summed."""
    total_us = 0
    for span in spans:
        end_us = until_us if span.until_us is None else min(span.until_us, until_us)
        total_us += max(0, end_us - max(span.from_us, from_us))
    return total_us / (60 * MICROSECONDS)


def count_each_second(spans: Sequence[Span], started_us: int, seconds: int) -> tuple[int, ...]:
    """Return how many spans are open as each second begins."""
    ends = [(span.from_us, sys.maxsize if span.until_us is None else span.until_us) for span in spans]
    times = (started_us + k * MICROSECONDS for k in range(seconds))
    return tuple(sum(begin <= at_us < end for begin, end in ends) for at_us in times)


def lag_each_second(ticks: Iterable[TickRecord], started_us: int, seconds: int) -> tuple[int | None, ...]:
    """Return the group's lag (events) at the last tick of each second; None where no tick could see it."""
    saw = [((tick.at_us - started_us) // MICROSECONDS, tick.partitions) for tick in ticks if tick.partitions]
    seen = {second: sum(partition.lag for partition in partitions) for second, partitions in saw}
    return tuple(seen.get(second) for second in range(seconds))


def decisions(journal: Iterable[JournalEntry], started_us: int) -> tuple[DecisionMade, ...]:
    """Return every plan, with its time since the start of the run and what was weighed at its tick."""
    entries = list(journal)
    ticks = only(entries, TickRecord)
    times = [tick.at_us for tick in ticks]

    def weighed(plan: PlanWritten) -> tuple[AlternativeWeighed, ...]:
        newest = bisect_right(times, plan.at_us) - 1
        return ticks[newest].alternatives if newest >= 0 and ticks[newest].reason == plan.reason else ()

    return tuple(
        DecisionMade(
            at_s=(plan.at_us - started_us) / MICROSECONDS,
            **{name: getattr(plan, name) for name in ("epoch", "action", "moved", "reason")},
            replicas=len(plan.replicas),
            alternatives=weighed(plan),
        )
        for plan in only(entries, PlanWritten)
    )


def failures(changes: Iterable[ReplicaChanged], started_us: int) -> tuple[Failure, ...]:
    """Return what went wrong with replicas."""
    wrong = [one for one in changes if one.change in {ReplicaChange.DIED, ReplicaChange.START_FAILED}]
    at_s = [(one.at_us - started_us) / MICROSECONDS for one in wrong]
    return tuple(
        Failure(at_s=at, replica=one.replica, change=one.change.value, detail=one.detail)
        for at, one in zip(at_s, wrong, strict=True)
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
    return closed + [Span(replica, from_us, None) for replica, from_us in since.items()]
