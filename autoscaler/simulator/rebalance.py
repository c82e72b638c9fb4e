"""Models of the rebalance protocols: our own, KIP-848, Kafka's classic protocol, and share groups."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from autoscaler.simulator.arrivals import Agenda
from autoscaler.simulator.chance import Heartbeats, ServiceTimes
from autoscaler.simulator.classic_rebalance import ClassicRebalance, CooperativeRebalance, EagerRebalance
from autoscaler.simulator.engine import NO_OWNER, Engine, Owners
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.settings import SimulationSettings
from contracts.rebalance_protocol import RebalanceProtocol

Timing = Callable[[int, int], int]
"""(Replica, earliest time in µs) → time in µs."""


@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """A partition that is moving. It is replaced, never changed, so that actions for an old move can be recognized."""

    partition: int
    to: int


class IncrementalRebalance(Owners):
    """Moves each partition by itself, without a group-wide rebalance (our protocol, KIP-848).

    An event in service is finished before its partition starts elsewhere. A newer plan cancels a move that has not
    begun. A move that has begun is redirected, and its pause starts again.
    stops_us: (owner, now) → time at which the owner stops.
    starts_us: (new owner, time at which the partition is free) → time at which the new owner starts.
    """

    def __init__(self, engine: Engine, agenda: Agenda, *, stops_us: Timing, starts_us: Timing) -> None:
        super().__init__(engine, agenda)
        self._stops_us, self._starts_us = stops_us, starts_us
        self._moves: dict[int, _Move] = {}

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Move the partitions to `owners`. This replaces earlier plans."""
        for partition, to in enumerate(owners):
            move = self._moves.get(partition)
            if to != (self._holder[partition] if move is None else move.to):
                self._move(partition, to)

    def on_death(self, replica: int, evicted_us: int) -> None:
        """Record a death. The replica's partitions do not start elsewhere before `evicted_us`."""
        orphans = self._held_by(replica)
        super().on_death(replica, evicted_us)
        for partition in orphans:
            if partition in self._moves:
                self._pause(partition, self._moves[partition].to)

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished its work, µs; None while it has partitions or will get some."""
        if replica in self._holder or any(move.to == replica for move in self._moves.values()):
            return None
        return self._busy_us.get(replica, 0)

    def _move(self, partition: int, to: int) -> None:
        owner, now_us = self._holder[partition], self._engine.now_us
        self._moves.pop(partition, None)
        if to == owner or self._evicted_us.get(to, now_us + 1) <= now_us:
            return
        if owner == NO_OWNER:
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


class ShareGroup:
    """A share group. Owners are ignored, all members serve all partitions, and there are no handovers."""

    def __init__(self, engine: Pool, agenda: Agenda) -> None:
        self._engine, self._agenda = engine, agenda
        self._members: frozenset[int] = frozenset()
        self._dead: frozenset[int] = frozenset()

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run."""
        self.carry_out(owners, members)

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Let exactly `members`, except dead ones, take events from now on."""
        members -= self._dead
        for replica in sorted(self._members - members):
            self._engine.leave(replica)
        for replica in sorted(members - self._members):
            self._engine.join(replica)
        self._members = members

    def on_death(self, replica: int, evicted_us: int) -> None:
        """Record a death. The event that `replica` had acquired is in the queue again from `evicted_us` on."""
        self._members, self._dead = self._members - {replica}, self._dead | {replica}
        self._agenda.at(evicted_us, partial(self._engine.give_back, replica))

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished its acquired event, µs; None while it is a member."""
        return None if replica in self._members else self._engine.busy_until_us(replica)


RebalanceModel = IncrementalRebalance | ClassicRebalance | ShareGroup
"""Carries out an assignment. Owners are numbers of ready replicas, by partition.

members: all replicas of the group, with or without partitions.
"""


def make_engine(partitions: int, settings: SimulationSettings, agenda: Agenda) -> tuple[Engine | Pool, RebalanceModel]:
    """Return the engine and the rebalance model of the settings. The engine of a share group is a Pool."""
    how, target_us = settings.rebalance, round(settings.latency_target_s * 1e6)
    service = ServiceTimes(settings.service, settings.seed)
    if how.rebalance_protocol is RebalanceProtocol.SHARE:
        pool = Pool(partitions, service, target_us=target_us)
        return pool, ShareGroup(pool, agenda)
    engine = Engine(partitions, service, target_us=target_us)
    is_led = how.rebalance_protocol in (RebalanceProtocol.LED_EAGER, RebalanceProtocol.LED_COOPERATIVE)
    heartbeats = Heartbeats(round(how.heartbeat_s * 1e6), settings.seed, in_phase=is_led)
    rebalance_time_us, pause_us = round(how.rebalance_time_s * 1e6), round(how.pause_s * 1e6)
    match how.rebalance_protocol:
        case RebalanceProtocol.INCREMENTAL:
            return engine, IncrementalRebalance(
                engine, agenda, stops_us=lambda _, now_us: now_us, starts_us=lambda _, free_us: free_us + pause_us
            )
        case RebalanceProtocol.KIP848:
            beats = heartbeats.next_us
            return engine, IncrementalRebalance(engine, agenda, stops_us=beats, starts_us=beats)
        case RebalanceProtocol.COOPERATIVE_STICKY | RebalanceProtocol.LED_COOPERATIVE:
            return engine, CooperativeRebalance(engine, agenda, heartbeats, rebalance_time_us)
        case _:  # all others are eager
            return engine, EagerRebalance(engine, agenda, heartbeats, rebalance_time_us)
