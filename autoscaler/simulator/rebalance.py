"""Models of the rebalance protocols: our own, KIP-848, Kafka's classic protocol, and share groups."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from autoscaler.simulator.arrivals import Agenda
from autoscaler.simulator.chance import Heartbeats
from autoscaler.simulator.engine import NO_OWNER, Engine
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.settings import RebalanceSettings
from contracts.rebalance_protocol import RebalanceProtocol

Timing = Callable[[int, int], int]
"""(Replica, earliest time in µs) → time in µs."""


class Owners:
    """Owners of the partitions. Only this class attaches and detaches partitions.

    A dead replica that was not evicted yet can get partitions. These are not served until it is evicted.
    """

    def __init__(self, engine: Engine, agenda: Agenda) -> None:
        self._engine = engine
        self._agenda = agenda
        self._busy_us: dict[int, int] = {}
        """Replica → time at which it finishes the last event of the partitions taken from it, µs."""
        self._evicted_us: dict[int, int] = {}
        """Dead replica → time of its eviction, µs."""

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run in which `owners` are in place."""
        self._holder = list(owners)
        """By partition: the replica that it is attached to, or NO_OWNER."""
        self._free_us = [0] * len(owners)
        """By partition: time at which its last owner releases it, µs. It is in the future while that owner is busy."""
        for partition, owner in enumerate(owners):
            self._engine.attach(partition, owner)

    def on_death(self, replica: int, evicted_us: int) -> None:
        """Record a death. The replica's partitions become free when it is evicted."""
        self._evicted_us[replica] = evicted_us
        for partition in self._held_by(replica):
            self._holder[partition] = NO_OWNER
            self._free_us[partition] = evicted_us

    def _held_by(self, replica: int) -> list[int]:
        return [partition for partition, holder in enumerate(self._holder) if holder == replica]

    def _detach(self, partition: int) -> None:
        owner = self._holder[partition]
        free_us = self._engine.in_service_until_us(partition)
        self._engine.detach(partition)
        self._holder[partition] = NO_OWNER
        self._free_us[partition] = free_us
        self._busy_us[owner] = max(free_us, self._busy_us.get(owner, 0))

    def _attach(self, partition: int, owner: int) -> None:
        if owner in self._evicted_us:
            self._free_us[partition] = max(self._free_us[partition], self._evicted_us[owner])
            return
        self._engine.attach(partition, owner)
        self._holder[partition] = owner


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
        self._stops_us = stops_us
        self._starts_us = starts_us
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


@dataclass(frozen=True, slots=True)
class _Assignment:
    """Result of a rebalance: owners by partition, and the members of the group."""

    owners: tuple[int, ...]
    members: frozenset[int]


class ClassicRebalance(Owners, ABC):
    """Kafka's classic protocol: all members join a rebalance, which then takes t_r.

    Members notice a rebalance at their next heartbeat. A new member joins at once. A member that has to stop joins when
    it has finished the event in service. Until all have joined, a newer plan replaces the plan. After that, it waits
    for the next rebalance, which follows at once. The group waits for dead members until they are evicted.
    """

    def __init__(self, engine: Engine, agenda: Agenda, heartbeats: Heartbeats, rebalance_time_us: int) -> None:
        super().__init__(engine, agenda)
        self._heartbeats = heartbeats
        self._rebalance_time_us = rebalance_time_us
        self._running = False
        self._awaited: set[int] = set()
        self._assigned: _Assignment
        """Result of the last rebalance."""
        self._wanted: _Assignment
        """Target of the next rebalance."""

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run. The owners are in place at once."""
        super().begin(owners, members)
        self._assigned = self._wanted = _Assignment(tuple(owners), members)

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Move the partitions to `owners`. This replaces earlier plans."""
        self._wanted = _Assignment(tuple(owners), members)
        if not self._running:
            self._continue()

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished its work, µs; None while it belongs to the group."""
        if replica in self._assigned.members or replica in self._wanted.members:
            return None
        return self._busy_us.get(replica, 0)

    def _continue(self) -> None:
        self._running = self._wanted != self._assigned
        if self._running:
            self._start_first()

    @abstractmethod
    def _start_first(self) -> None:
        """Start the first rebalance towards the newest plan."""

    def _rebalance(self, members: Iterable[int], joins_us: Callable[[int], int], end: Callable[[], None]) -> None:
        self._awaited = set(members)
        for member in sorted(self._awaited):
            notices_us = self._heartbeats.next_us(member, self._engine.now_us)
            self._agenda.at(notices_us, partial(self._notice, member, joins_us, end))
        if not self._awaited:
            self._all_joined(end)

    def _notice(self, member: int, joins_us: Callable[[int], int], end: Callable[[], None]) -> None:
        dead = member in self._evicted_us
        self._agenda.at(self._engine.now_us if dead else joins_us(member), partial(self._join, member, end))

    def _join(self, member: int, end: Callable[[], None]) -> None:
        evicted_us = self._evicted_us.get(member, 0)
        if evicted_us > self._engine.now_us:
            self._agenda.at(evicted_us, partial(self._join, member, end))
            return
        self._awaited.discard(member)
        if not self._awaited:
            self._all_joined(end)

    def _all_joined(self, end: Callable[[], None]) -> None:
        self._assigned = _Assignment(self._wanted.owners, self._wanted.members | self._assigned.members)
        self._agenda.at(self._engine.now_us + self._rebalance_time_us, partial(self._end, self._wanted, end))

    def _end(self, assigned: _Assignment, end: Callable[[], None]) -> None:
        self._assigned = assigned
        end()

    def _finished_us(self, member: int) -> int:
        return max(self._engine.now_us, self._busy_us.get(member, 0))


class EagerRebalance(ClassicRebalance):
    """Stops the whole group. Each member stops when it notices the rebalance. All start again at its end."""

    def _start_first(self) -> None:
        self._rebalance(self._assigned.members, self._stop_all, self._start_all)

    def _stop_all(self, member: int) -> int:
        for partition in self._held_by(member):
            self._detach(partition)
        return self._finished_us(member)

    def _start_all(self) -> None:
        for partition, owner in enumerate(self._assigned.owners):
            self._attach(partition, owner)
        self._continue()


class CooperativeRebalance(ClassicRebalance):
    """Rebalances twice. All partitions are served during the first rebalance. Then the partitions that move stop.

    They start when the second rebalance has ended. Partitions without an owner start when the first one has ended.
    """

    def _start_first(self) -> None:
        self._rebalance(self._assigned.members, lambda _: self._engine.now_us, self._release)

    def _release(self) -> None:
        holder, owners = self._holder, self._assigned.owners
        moving = [partition for partition, owner in enumerate(owners) if holder[partition] not in (owner, NO_OWNER)]
        members = self._assigned.members.union(holder[partition] for partition in moving)
        self._start_free()
        for partition in moving:
            self._detach(partition)
        if moving:
            self._rebalance(members, self._finished_us, self._start_moved)
        else:
            self._continue()

    def _start_moved(self) -> None:
        """End the second rebalance. Partitions that a newer plan moves need further ones."""
        self._start_free()
        pairs = zip(self._holder, self._assigned.owners, strict=True)
        owners = tuple(owner if holder == NO_OWNER else holder for holder, owner in pairs)
        self._assigned = _Assignment(owners, self._assigned.members.union(self._holder) - {NO_OWNER})
        self._continue()

    def _start_free(self) -> None:
        for partition in self._held_by(NO_OWNER):
            self._attach(partition, self._assigned.owners[partition])


class ShareGroup:
    """A share group. Owners are ignored, all members serve all partitions, and there are no handovers."""

    def __init__(self, engine: Pool, agenda: Agenda) -> None:
        self._engine = engine
        self._agenda = agenda
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


def make_rebalance_model(settings: RebalanceSettings, engine: Engine, agenda: Agenda, seed: int) -> RebalanceModel:
    """Return the model of `settings.rebalance_protocol`, which must not be a share group, with its timing."""
    is_led = settings.rebalance_protocol in (RebalanceProtocol.LED_EAGER, RebalanceProtocol.LED_COOPERATIVE)
    heartbeats = Heartbeats(round(settings.heartbeat_s * 1e6), seed, in_phase=is_led)
    rebalance_time_us = round(settings.rebalance_time_s * 1e6)
    match settings.rebalance_protocol:
        case RebalanceProtocol.INCREMENTAL:
            pause_us = round(settings.pause_s * 1e6)
            return IncrementalRebalance(
                engine, agenda, stops_us=lambda _, now_us: now_us, starts_us=lambda _, free_us: free_us + pause_us
            )
        case RebalanceProtocol.KIP848:
            return IncrementalRebalance(engine, agenda, stops_us=heartbeats.next_us, starts_us=heartbeats.next_us)
        case RebalanceProtocol.COOPERATIVE_STICKY | RebalanceProtocol.LED_COOPERATIVE:
            return CooperativeRebalance(engine, agenda, heartbeats, rebalance_time_us)
        case _:  # all others are eager
            return EagerRebalance(engine, agenda, heartbeats, rebalance_time_us)
