"""Explains the decisions of an autoscaler from its journal: change, reason, compared plans, effect."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Final

import msgspec

from contracts.fields import MAX_REASON_CHARS
from contracts.journal import JournalEntry, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from report.wording import duration, share

EFFECT_US: Final = 10_000_000
"""Time after a decision whose effect is stated."""
NO_CHANGE: Final = "no-change"
WOULD: Final = "would: "
"""Begin of the reasons of an autoscaler that only observes."""
DAY_S: Final = 86_400
MAX_ALTERNATIVES: Final = 5
MOVED_LISTED: Final = 8


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """One decision that changed something, or successive decisions to change nothing, folded."""

    at_us: int
    """Time of the first decision."""
    last_us: int
    """Time of the last decision that is folded."""
    times: int
    """Number of decisions that are folded."""
    epoch: int
    """Epoch of the plan in force afterwards."""
    action: str
    replicas: tuple[int, int]
    """Requested replicas before, and planned replicas afterwards."""
    moves: tuple[str, ...]
    """Partitions with a new owner: "p3 → payment-2"."""
    why: str
    compared: tuple[str, ...]
    """Plans that the policy compared, with their predictions; the chosen one is the first."""
    effect: str
    """Events waiting and replicas ready ten seconds later; empty if that is unknown or nothing changed."""
    problems: tuple[str, ...]
    rails: tuple[str, ...] = ()
    """Limits that changed what the policy wanted."""
    uncapped: int = 0
    """Replica count that the policy wanted without them; 0: none was binding."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of text, the first of which has time and change."""
        before, after = self.replicas
        what = f"{self.action} {before} → {_replicas(after)}" if before != after else self.action
        what = f"would {what}" if self.why.startswith(WOULD) else what
        what = f"no change ×{self.times} at {_replicas(after)}" if self.action == NO_CHANGE else what
        moved = ", ".join(self.moves[:MOVED_LISTED]) + (", …" if len(self.moves) > MOVED_LISTED else "")
        yield f"{clock(self.at_us)}  {what}, plan {self.epoch}" + (
            f"; {len(self.moves)} moved: {moved}" if moved else ""
        )
        yield f"  why       {self.why}"
        if self.rails:
            yield f"  rails     {', '.join(self.rails)}; without: {_replicas(self.uncapped)}"
        for text in self.compared[:MAX_ALTERNATIVES]:
            yield f"  compared  {text}"
        if self.effect:
            yield f"  after 10 s  {self.effect}"
        for problem in self.problems:
            yield f"  problem   {problem}"

    def why_not(self, count: int) -> str:
        """Return the prediction for another replica count beside that of the chosen plan."""
        found = next((text for text in self.compared if text.startswith(f"{_replicas(count)},")), "")
        others = ", ".join(dict.fromkeys(text.split()[0] for text in self.compared)) or "none: it follows a rule"
        chosen = "".join(f"; chosen: {text}" for text in self.compared[:1])
        return f"  why not   {found or f'{count} was not compared; the counts are {others}'}{chosen}"


def clock(at_us: int) -> str:
    """Return the time of day in UTC: "14:03:12"."""
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).strftime("%H:%M:%S")


def explain(entries: Sequence[JournalEntry]) -> list[Explained]:
    """Return every decision of a journal, oldest first. Consecutive decisions to change nothing are folded."""
    ticks = [entry for entry in entries if isinstance(entry, TickRecord)]
    plans = {entry.epoch: entry for entry in entries if isinstance(entry, PlanWritten)}
    changes = [entry for entry in entries if isinstance(entry, ReplicaChanged)]
    found: list[Explained] = []
    for tick in ticks:
        before = found[-1] if found else None
        is_same = before and (before.action, before.epoch, before.rails) == (NO_CHANGE, tick.epoch, tick.rails)
        if tick.action == NO_CHANGE and is_same:
            found[-1] = msgspec.structs.replace(
                found[-1], last_us=tick.at_us, times=found[-1].times + 1, why=_reason(tick), problems=tick.problems
            )
        else:
            found.append(_explained(tick, ticks, plans, changes))
    return found


def select(found: Sequence[Explained], which: str) -> list[Explained]:
    """Return the decisions that a user asks for. Raises ValueError with one sentence.

    which: `last` (the last change and what follows it), `all`, the epoch of a plan, or a time HH:MM:SS in UTC.
    """
    if which == "all" or not found:
        return list(found)
    if which == "last":
        last = max((at for at, one in enumerate(found) if one.action != NO_CHANGE), default=0)
        return list(found[last:])
    if which.isdecimal():
        wanted: Callable[[Explained], bool] = lambda one: one.epoch == int(which)  # noqa: E731
        return _first(found, wanted, f"no decision led to plan {which}")
    try:
        of_day = datetime.strptime(f"1970 {which}", "%Y %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError(f"{which!r} is neither last, all, the epoch of a plan nor a time HH:MM:SS") from None
    last_s = found[-1].last_us // 1_000_000
    wanted_s = last_s - (last_s - of_day.timestamp()) % DAY_S  # the latest such time that the journal reaches
    reach = f"{clock(found[0].at_us)} to {clock(found[-1].last_us)}"
    problem = f"the journal has no decision at or before {which} UTC; it reaches from {reach}"
    return _first(found[::-1], lambda one: one.at_us // 1_000_000 <= wanted_s, problem)


def _first(found: Iterable[Explained], wanted: Callable[[Explained], bool], problem: str) -> list[Explained]:
    for one in found:
        if wanted(one):
            return [one]
    raise ValueError(problem)


def _explained(
    tick: TickRecord, ticks: Sequence[TickRecord], plans: dict[int, PlanWritten], changes: Sequence[ReplicaChanged]
) -> Explained:
    changed = tick.action != NO_CHANGE
    plan = _plan_of(tick, ticks, plans) if changed else None
    owners = {state.partition: state.owner for state in tick.partitions}
    moves = [
        f"p{partition} → {owner}"
        for partition, owner in ((plan.assignment if plan else None) or {}).items()
        if owners.get(partition, owner) != owner
    ]
    return Explained(
        at_us=tick.at_us,
        last_us=tick.at_us,
        times=1,
        epoch=plan.epoch if plan else tick.epoch,
        action=tick.action,
        replicas=(tick.requested_replicas, tick.planned_replicas),
        moves=tuple(moves),
        why=_reason(tick),
        compared=tuple(
            f"{_replicas(one.replicas)}, {one.moved} moved: {share(one.in_sla)} in time at cost {one.cost_s:.1f}"
            for one in tick.alternatives
        ),
        effect=_effect(tick, ticks, changes) if changed else "",
        problems=tick.problems,
        rails=tick.rails,
        uncapped=tick.uncapped,
    )


def _plan_of(tick: TickRecord, ticks: Sequence[TickRecord], plans: dict[int, PlanWritten]) -> PlanWritten | None:
    """Return the plan of a decision; None: it was not written before the next change."""
    until_us = min((one.at_us for one in ticks if one.at_us > tick.at_us and one.action != NO_CHANGE), default=inf)
    due = (one for one in plans.values() if tick.at_us <= one.at_us < until_us and one.action == tick.action)
    return next((one for one in due if one.reason[:MAX_REASON_CHARS] == tick.reason[:MAX_REASON_CHARS]), None)


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"


def _reason(tick: TickRecord) -> str:
    return f"{tick.reason}: {tick.missing}" if tick.missing else tick.reason


def _effect(tick: TickRecord, ticks: Sequence[TickRecord], changes: Sequence[ReplicaChanged]) -> str:
    later = next((one for one in ticks if one.at_us >= tick.at_us + EFFECT_US and one.partitions), None)
    if later is None:
        return ""
    waiting = [sum(state.lag for state in one.partitions) for one in (tick, later)]
    parts = [f"{waiting[0]} → {waiting[1]} events waiting", f"{_replicas(later.ready_replicas)} ready"]
    asked: dict[str, int] = {}
    for change in changes:
        if change.change is ReplicaChange.REQUESTED and 0 <= change.at_us - tick.at_us < EFFECT_US:
            asked[change.replica] = change.at_us
        elif change.change is ReplicaChange.READY and change.replica in asked:
            parts.append(f"{change.replica} ready after {duration((change.at_us - asked.pop(change.replica)) / 1e6)}")
    return ", ".join(parts)
