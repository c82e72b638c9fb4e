"""Fold the decisions of a journal as it grows: change, reason, compared plans, effect."""

from dataclasses import dataclass, field
from typing import Final

import msgspec

from contracts.fields import MAX_REASON_CHARS
from contracts.journal import JournalEntry, PlanAlternative, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord

EFFECT_US: Final = 10_000_000
"""Time after a change at which its effect is stated, µs."""
NO_CHANGE: Final = "no-change"


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """One decision that changed something, or a number of equal decisions to change nothing. Times: µs since 1970."""

    at_us: int
    last_us: int
    """Time of the last decision that is folded."""
    times: int
    epoch: int
    """Epoch of the plan in force afterwards."""
    action: str
    replicas: tuple[int, int]
    """Requested replicas before, and planned replicas afterwards."""
    why: str
    compared: tuple[PlanAlternative, ...]
    """Plans that the policy compared, with their predictions; the chosen one is the first."""
    problems: tuple[str, ...]
    rails: tuple[str, ...] = ()
    """Limits that changed what the policy wanted."""
    uncapped: int = 0
    """Replica count that the policy wanted without them; 0: none was binding."""
    moves: tuple[tuple[int, str], ...] = ()
    """Partitions with a new owner."""
    waiting: int = 0
    """Events that waited at the decision."""
    started: tuple[tuple[str, float], ...] = ()
    """Replicas that were requested and ready within ten seconds, and the time in s that took."""
    effect: tuple[int, int] | None = None
    """Events waiting and replicas ready ten seconds later; None until then."""


@dataclass(slots=True)
class Decisions:
    """The newest decisions, by number. most: how many are kept."""

    most: int = 40
    rows: dict[int, Decided] = field(default_factory=dict)
    _number: int = 0
    _changes: dict[int, TickRecord] = field(default_factory=dict)
    """Number of a change whose effect is not known yet → its tick."""
    _change: tuple[int, TickRecord] | None = None
    """The newest change, until its plan is written."""
    _plan: PlanWritten | None = None
    """A plan whose decision is not recorded yet: a controller writes the plan first if it can."""
    _requested_us: dict[str, int] = field(default_factory=dict)

    def record(self, entry: JournalEntry) -> None:
        """Record one entry of the journal."""
        match entry:
            case PlanWritten():
                self._plan = None if self._adopt(entry) else entry
            case TickRecord():
                self._record_tick(entry)
            case ReplicaChanged(change=ReplicaChange.REQUESTED):
                self._requested_us[entry.replica] = entry.at_us
            case ReplicaChanged(change=ReplicaChange.READY):
                since_us = self._requested_us.pop(entry.replica, None)
                for number, tick in self._changes.items():
                    if since_us is not None and number in self.rows and 0 <= since_us - tick.at_us < EFFECT_US:
                        took = (entry.replica, (entry.at_us - since_us) / 1e6)
                        self.rows[number] = _with(self.rows[number], started=(*self.rows[number].started, took))

    def _adopt(self, plan: PlanWritten) -> bool:
        """Give the plan to the newest change, if it is that change's plan. Return whether it is."""
        number, tick = self._change or (0, None)
        if tick is None or number not in self.rows or plan.action != tick.action or plan.at_us < tick.at_us:
            return False
        if plan.reason[:MAX_REASON_CHARS] != tick.reason[:MAX_REASON_CHARS]:
            return False
        owners = {one.partition: one.owner for one in tick.partitions}
        moves = tuple((one, to) for one, to in (plan.assignment or {}).items() if owners.get(one, to) != to)
        self.rows[number] = _with(self.rows[number], epoch=plan.epoch, moves=moves)
        self._change = None
        return True

    def _record_tick(self, tick: TickRecord) -> None:
        waiting = sum(one.lag for one in tick.partitions)
        for number, change in [*self._changes.items()]:
            if tick.at_us >= change.at_us + EFFECT_US and tick.partitions:
                del self._changes[number]
                if number in self.rows:
                    self.rows[number] = _with(self.rows[number], effect=(waiting, tick.ready_replicas))
        why = f"{tick.reason}: {tick.missing}" if tick.missing else tick.reason
        last = self.rows.get(self._number)
        same = (NO_CHANGE, tick.epoch, tick.rails)
        if last and tick.action == NO_CHANGE and (last.action, last.epoch, last.rails) == same:
            times = last.times + 1
            self.rows[self._number] = _with(last, last_us=tick.at_us, times=times, why=why, problems=tick.problems)
            return
        self._number += 1
        self.rows[self._number] = Decided(
            at_us=tick.at_us, last_us=tick.at_us, times=1, action=tick.action, why=why, problems=tick.problems,
            replicas=(tick.requested_replicas, tick.planned_replicas), epoch=tick.epoch, waiting=waiting,
            compared=tick.alternatives, rails=tick.rails, uncapped=tick.uncapped,
        )  # fmt: skip
        self.rows.pop(self._number - self.most, None)
        if tick.action != NO_CHANGE:
            self._changes[self._number] = tick
            self._change = self._number, tick
            if self._plan is not None:
                self._adopt(self._plan)
        self._plan = None


def _with(row: Decided, **changes: object) -> Decided:
    return msgspec.structs.replace(row, **changes)
