"""Partitions that change their owners one by one, without rounds: under our own delivery, and under KIP-848's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autoscaler.simulator.agenda import Agenda
from autoscaler.simulator.engine import NOBODY, Engine

Timing = Callable[[int, int], int]
"""(replica, µs from when on) → µs."""


@dataclass(frozen=True, slots=True)
class Handover:
    """One partition that changed its owner. Times in µs since the start of the run."""

    partition: int
    free_us: int
    """When the last event at the owner before was finished, or that owner was given up for dead."""
    attached_us: int
    """When the next event could start."""
    replica: int
    """Number of the new owner."""


Completed = Callable[[Handover], None]
"""Told of each handover when it is complete."""


class Owners:
    """Who serves which partition: the one place from which partitions are attached and detached.

    A replica that died and is believed alive can be given partitions: nobody serves them until it is evicted.
    """

    def __init__(self, engine: Engine, agenda: Agenda, completed: Completed) -> None:
        self._engine = engine
        self._agenda = agenda
        self._completed = completed
        self._busy_us: dict[int, int] = {}
        """Replica → when it finishes the last event of what was taken from it."""
        self._evicted_us: dict[int, int] = {}
        """Dead replica → when the group stops to take it for alive."""

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run: the owners are in place at once."""
        self._holder = list(owners)
        """By partition: the replica that it is attached to, or NOBODY."""
        self._before = list(owners)
        self._free_us = [0] * len(owners)
        """By partition: when its last owner lets go of it; later than now while that one finishes an event of it."""
        for partition, owner in enumerate(owners):
            self._engine.attach(partition, owner)

    def lost(self, replica: int, evicted_us: int) -> None:
        """Take note of a death: what `replica` served is free when it is evicted."""
        self._evicted_us[replica] = evicted_us
        for partition in self._held_by(replica):
            self._holder[partition] = NOBODY
            self._free_us[partition] = evicted_us

    def _held_by(self, replica: int) -> list[int]:
        return [partition for partition, holder in enumerate(self._holder) if holder == replica]

    def _detach(self, partition: int) -> None:
        """Detach `partition` now; an event of it in service is finished first."""
        owner = self._holder[partition]
        free_us = self._engine.in_service_until_us(partition)
        self._engine.detach(partition)
        self._holder[partition] = NOBODY
        self._free_us[partition] = free_us
        self._busy_us[owner] = max(free_us, self._busy_us.get(owner, 0))

    def _attach(self, partition: int, owner: int) -> None:
        """Attach `partition`, which is free, to `owner` now."""
        if owner in self._evicted_us:
            self._free_us[partition] = max(self._free_us[partition], self._evicted_us[owner])
            return
        self._engine.attach(partition, owner)
        self._holder[partition] = owner
        if owner != self._before[partition]:
            self._before[partition] = owner
            self._completed(Handover(partition, self._free_us[partition], self._engine.now_us, owner))


@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """A partition on its way. Replaced, never changed: what the agenda holds for an old one has lost its point."""

    partition: int
    to: int


class Handovers(Owners):
    """Implements PlanDelivery without rounds. An event in service is finished before its partition starts elsewhere.

    stops_us: (owner, now) → when the owner stops. starts_us: (new owner, when the partition is free) → when it starts.
    A newer plan overrides a move that has not begun; one that has is redirected, and its pause begins anew.
    """

    def __init__(
        self, engine: Engine, agenda: Agenda, completed: Completed, *, stops_us: Timing, starts_us: Timing
    ) -> None:
        super().__init__(engine, agenda, completed)
        self._stops_us = stops_us
        self._starts_us = starts_us
        self._moves: dict[int, _Move] = {}

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """From now on work towards `owners`; that replaces what was wanted before."""
        for partition, to in enumerate(owners):
            move = self._moves.get(partition)
            if to != (self._holder[partition] if move is None else move.to):
                self._head_for(partition, to)

    def lost(self, replica: int, evicted_us: int) -> None:
        """Keep what `replica` served, which died now, from starting elsewhere before `evicted_us`."""
        orphans = self._held_by(replica)
        super().lost(replica, evicted_us)
        for partition in orphans:
            if partition in self._moves:
                self._pause(partition, self._moves[partition].to)

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished all it was given; None while it holds something or is to get something."""
        if replica in self._holder or any(move.to == replica for move in self._moves.values()):
            return None
        return self._busy_us.get(replica, 0)

    def _head_for(self, partition: int, to: int) -> None:
        owner, now_us = self._holder[partition], self._engine.now_us
        self._moves.pop(partition, None)
        if to == owner or self._evicted_us.get(to, now_us + 1) <= now_us:
            return
        if owner == NOBODY:
            self._pause(partition, to)
            return
        move = self._moves[partition] = _Move(partition, to)
        self._agenda.at(self._stops_us(owner, now_us), lambda: self._stop(move))

    def _stop(self, move: _Move) -> None:
        if self._moves.get(move.partition) is move:
            self._detach(move.partition)
            self._pause(move.partition, move.to)

    def _pause(self, partition: int, to: int) -> None:
        move = self._moves[partition] = _Move(partition, to)
        free_us = max(self._engine.now_us, self._free_us[partition])
        self._agenda.at(self._starts_us(to, free_us), lambda: self._start(move))

    def _start(self, move: _Move) -> None:
        if self._moves.get(move.partition) is move:
            del self._moves[move.partition]
            self._attach(move.partition, move.to)
