"""Fold the decisions of a journal as it grows: equal decisions to change nothing become one row."""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from contracts.journal import JournalEntry, PlanWritten, TickRecord

EFFECT_US: Final = 10_000_000
"""Time after a change at which its effect is stated, µs."""
MAX_ROWS: Final = 40
MAX_ALTERNATIVES: Final = 6
NO_CHANGE: Final = "no-change"


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """One change, or a number of equal decisions to change nothing. Times are µs since 1970."""

    at_us: int
    last_us: int
    times: int
    action: str
    before: int
    """Requested replicas before the decision."""
    after: int
    """Planned replicas after it."""
    epoch: int
    why: str
    compared: tuple[tuple[int, int, float, float], ...]
    """Replicas, moved partitions, predicted share in time and cost (replica-seconds) of each plan; the chosen first."""
    moves: tuple[tuple[int, str], ...] = ()
    """Partitions with a new owner."""
    waiting: int = 0
    """Events that waited at the decision."""
    effect: str = ""
    """Events waiting and replicas ready ten seconds later; empty until then."""


@dataclass(slots=True)
class Decisions:
    """The newest decisions, by number."""

    rows: dict[int, Decided] = field(default_factory=dict)
    _owners: dict[int, str | None] = field(default_factory=dict)
    """Partition → owner by the newest plan, or by the newest tick before a plan."""
    _moves: tuple[tuple[int, str], ...] = ()
    """Moves of a plan whose tick is still to come."""
    _epoch: int = 0
    _number: int = 0

    def record(self, entry: JournalEntry) -> None:
        """Record one entry of the journal."""
        if isinstance(entry, PlanWritten):
            self._record_plan(entry)
        elif isinstance(entry, TickRecord):
            self._record_tick(entry)

    def _record_plan(self, plan: PlanWritten) -> None:
        assigned: dict[int, str] = plan.assignment or {}
        self._moves = tuple(
            (number, owner) for number, owner in assigned.items() if self._owners.get(number, owner) != owner
        )
        self._owners = {**self._owners, **assigned}
        self._epoch = plan.epoch
        row = self.rows.get(self._number)
        if row and row.action == plan.action and row.why == plan.reason and not row.moves:  # the plan had to wait
            self.rows[self._number] = msgspec.structs.replace(row, epoch=plan.epoch, moves=self._moves)
            self._moves = ()

    def _record_tick(self, tick: TickRecord) -> None:
        waiting = sum(one.lag for one in tick.partitions)
        for number, row in self.rows.items():
            if row.action != NO_CHANGE and not row.effect and tick.at_us >= row.at_us + EFFECT_US and tick.partitions:
                effect = f"{row.waiting} → {waiting} events waiting, {tick.ready_replicas} ready"
                self.rows[number] = msgspec.structs.replace(row, effect=effect)
        self._owners = {one.partition: one.owner for one in tick.partitions} | self._owners
        why = f"{tick.reason}: {tick.missing}" if tick.missing else tick.reason
        last = self.rows.get(self._number)
        if tick.action == NO_CHANGE and last is not None and last.action == NO_CHANGE:
            changes: dict[str, Any] = {"last_us": tick.at_us, "times": last.times + 1, "why": why}
            self.rows[self._number] = msgspec.structs.replace(last, **changes, compared=_compared(tick))
            return
        self._number += 1
        self.rows[self._number] = Decided(
            at_us=tick.at_us, last_us=tick.at_us, times=1, action=tick.action, before=tick.requested_replicas,
            after=tick.planned_replicas, epoch=tick.epoch, why=why, compared=_compared(tick), waiting=waiting,
            moves=self._moves if tick.action != NO_CHANGE and tick.epoch == self._epoch else (),
        )  # fmt: skip
        self._moves = ()
        self.rows.pop(self._number - MAX_ROWS, None)


def _compared(tick: TickRecord) -> tuple[tuple[int, int, float, float], ...]:
    each = tick.alternatives[:MAX_ALTERNATIVES]
    return tuple((one.replicas, one.moved, round(one.in_sla, 5), round(one.cost_s, 2)) for one in each)
