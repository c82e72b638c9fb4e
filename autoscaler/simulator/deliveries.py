"""Ways to deliver plans by name, and those in which no partition waits for another: ours, KIP-848, a share group."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from autoscaler.simulator.agenda import Agenda
from autoscaler.simulator.chance import Heartbeats
from autoscaler.simulator.engine import NOBODY, Engine
from autoscaler.simulator.holdings import Completed, Holdings, PlanDelivery
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.rounds import CooperativeSticky, Eager
from autoscaler.simulator.settings import DeliverySettings
from contracts.delivery import Delivery

Timing = Callable[[int, int], int]
"""(replica, µs from when on) → µs."""


def make_delivery(
    settings: DeliverySettings, engine: Engine, agenda: Agenda, completed: Completed, seed: int
) -> PlanDelivery:
    """Return the model of `settings.delivery`, which is none of a share group, with its timing."""
    heartbeats = Heartbeats(round(settings.heartbeat_s * 1e6), seed)
    rebalance_time_us = round(settings.rebalance_time_s * 1e6)
    match settings.delivery:
        case Delivery.INCREMENTAL:
            pause_us, notice_us = round(settings.pause_s * 1e6), round(settings.notice_s * 1e6)
            return Handovers(
                engine,
                agenda,
                completed,
                stops_us=lambda _, now_us: now_us + notice_us,
                starts_us=lambda _, free_us: free_us + pause_us,
            )
        case Delivery.KIP848:
            return Handovers(engine, agenda, completed, stops_us=heartbeats.next_us, starts_us=heartbeats.next_us)
        case Delivery.COOPERATIVE_STICKY:
            return CooperativeSticky(engine, agenda, completed, heartbeats, rebalance_time_us)
        case _:  # eager, and Faust's consumer, which rebalances eagerly
            return Eager(engine, agenda, completed, heartbeats, rebalance_time_us)


@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """A partition on its way. Replaced, never changed: what the agenda holds for an old one has lost its point."""

    partition: int
    to: int


class Handovers:
    """Implements PlanDelivery. An event in service is always finished before its partition starts elsewhere.

    stops_us: (owner, now) → when the owner stops. starts_us: (new owner, when the partition is free) → when it starts.
    A newer plan overrides a move that has not begun; one that has is redirected, and its pause begins anew.
    """

    def __init__(
        self, engine: Engine, agenda: Agenda, completed: Completed, *, stops_us: Timing, starts_us: Timing
    ) -> None:
        self._engine = engine
        self._agenda = agenda
        self._completed = completed
        self._stops_us = stops_us
        self._starts_us = starts_us
        self._moves: dict[int, _Move] = {}
        self._held: Holdings

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run: the owners are in place at once."""
        self._held = Holdings(self._engine, owners, self._completed)

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """From now on work towards `owners`; that replaces what was wanted before."""
        for partition, to in enumerate(owners):
            move = self._moves.get(partition)
            if to != (self._held.holder[partition] if move is None else move.to):
                self._head_for(partition, to)

    def lost(self, replica: int, evicted_us: int) -> None:
        """Keep what `replica` served, which died now, from starting elsewhere before `evicted_us`."""
        for partition in self._held.lost(replica, evicted_us):
            if partition in self._moves:
                self._pause(partition, self._moves[partition].to)

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished all it was given; None while it holds something or is to get something."""
        if replica in self._held.holder or any(move.to == replica for move in self._moves.values()):
            return None
        return self._held.busy_us.get(replica, 0)

    def _head_for(self, partition: int, to: int) -> None:
        owner = self._held.holder[partition]
        self._moves.pop(partition, None)
        if to == owner or self._held.gone(to):
            return
        if owner == NOBODY:
            self._pause(partition, to)
            return
        move = self._moves[partition] = _Move(partition, to)
        self._agenda.at(self._stops_us(owner, self._engine.now_us), lambda: self._stop(move))

    def _stop(self, move: _Move) -> None:
        if self._moves.get(move.partition) is move:
            self._held.stop(move.partition)
            self._pause(move.partition, move.to)

    def _pause(self, partition: int, to: int) -> None:
        move = self._moves[partition] = _Move(partition, to)
        free_us = max(self._engine.now_us, self._held.free_us[partition])
        self._agenda.at(self._starts_us(to, free_us), lambda: self._start(move))

    def _start(self, move: _Move) -> None:
        if self._moves.get(move.partition) is move:
            del self._moves[move.partition]
            self._held.start(move.partition, move.to)


class Share:
    """Implements PlanDelivery for a share group: owners are ignored, all members serve, and nothing is handed over."""

    def __init__(self, engine: Pool, agenda: Agenda) -> None:
        self._engine = engine
        self._agenda = agenda
        self._members: frozenset[int] = frozenset()

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run."""
        self.carry_out(owners, members)

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Let exactly `members` take events from now on."""
        for replica in sorted(self._members - members):
            self._engine.leave(replica)
        for replica in sorted(members - self._members):
            self._engine.join(replica)
        self._members = members

    def lost(self, replica: int, evicted_us: int) -> None:
        """Let the others have what `replica` had acquired, from `evicted_us` on."""
        self._members -= {replica}
        self._agenda.at(evicted_us, partial(self._engine.give_back, replica))

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished what it had acquired; None while it is a member."""
        return None if replica in self._members else self._engine.busy_until_us(replica)
