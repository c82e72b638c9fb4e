"""Ways to carry out a plan, by name: our own, KIP-848's, the rounds of Kafka's classic protocol, a share group's."""

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
"""(replica, µs from when on) → µs."""


class Owners:
    """Who serves which partition: the one place from which partitions are attached and detached.

    A replica that died and is believed alive can be given partitions: nobody serves them until it is evicted.
    """

    def __init__(self, engine: Engine, agenda: Agenda) -> None:
        self._engine = engine
        self._agenda = agenda
        self._busy_us: dict[int, int] = {}
        """Replica → when it finishes the last event of what was taken from it."""
        self._evicted_us: dict[int, int] = {}
        """Dead replica → when the group stops to take it for alive."""

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run: the owners are in place at once."""
        self._holder = list(owners)
        """By partition: the replica that it is attached to, or NOBODY."""
        self._free_us = [0] * len(owners)
        """By partition: when its last owner lets go of it; later than now while that one finishes an event of it."""
        for partition, owner in enumerate(owners):
            self._engine.attach(partition, owner)

    def on_death(self, replica: int, evicted_us: int) -> None:
        """Take note of a death: what `replica` served is free when it is evicted."""
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
    """A partition on its way. Replaced, never changed: what the agenda holds for an old one has lost its point."""

    partition: int
    to: int


class IncrementalRebalance(Owners):
    """A delivery without rounds. An event in service is finished before its partition starts elsewhere.

    stops_us: (owner, now) → when the owner stops. starts_us: (new owner, when the partition is free) → when it starts.
    A newer plan overrides a move that has not begun; one that has is redirected, and its pause begins anew.
    """

    def __init__(self, engine: Engine, agenda: Agenda, *, stops_us: Timing, starts_us: Timing) -> None:
        super().__init__(engine, agenda)
        self._stops_us = stops_us
        self._starts_us = starts_us
        self._moves: dict[int, _Move] = {}

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """From now on work towards `owners`; that replaces what was wanted before."""
        for partition, to in enumerate(owners):
            move = self._moves.get(partition)
            if to != (self._holder[partition] if move is None else move.to):
                self._head_for(partition, to)

    def on_death(self, replica: int, evicted_us: int) -> None:
        """Keep what `replica` served, which died now, from starting elsewhere before `evicted_us`."""
        orphans = self._held_by(replica)
        super().on_death(replica, evicted_us)
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
class _Deal:
    """What a round hands out: owners by partition, and who belongs to the group."""

    owners: tuple[int, ...]
    members: frozenset[int]


class ClassicRebalance(Owners, ABC):
    """Delivery by Kafka's classic protocol: everybody joins a round, and it takes t_r.

    Members notice a round at their next heartbeat; who has just become ready joins at once. A member joins as soon as
    it has finished the event in service, if it has to stop for the round. The newest plan counts until all have
    joined; what comes later waits for the next round, which follows at once. The dead are waited for until evicted.
    """

    def __init__(self, engine: Engine, agenda: Agenda, heartbeats: Heartbeats, rebalance_time_us: int) -> None:
        super().__init__(engine, agenda)
        self._heartbeats = heartbeats
        self._rebalance_time_us = rebalance_time_us
        self._running = False
        self._awaited: set[int] = set()
        self._dealt: _Deal
        """Handed out by the last round."""
        self._wanted: _Deal
        """To be handed out by the next."""

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run: the owners are in place at once."""
        super().begin(owners, members)
        self._dealt = self._wanted = _Deal(tuple(owners), members)

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """From now on work towards `owners`; that replaces what was wanted before."""
        self._wanted = _Deal(tuple(owners), members)
        if not self._running:
            self._go_on()

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished all it was given; None while it belongs to the group."""
        if replica in self._dealt.members or replica in self._wanted.members:
            return None
        return self._busy_us.get(replica, 0)

    def _go_on(self) -> None:
        self._running = self._wanted != self._dealt
        if self._running:
            self._first_round()

    @abstractmethod
    def _first_round(self) -> None:
        """Begin to deliver what is wanted."""

    def _round(self, members: Iterable[int], joins_us: Callable[[int], int], end: Callable[[], None]) -> None:
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
        self._dealt = _Deal(self._wanted.owners, self._wanted.members | self._dealt.members)
        self._agenda.at(self._engine.now_us + self._rebalance_time_us, partial(self._end, self._wanted, end))

    def _end(self, dealt: _Deal, end: Callable[[], None]) -> None:
        self._dealt = dealt
        end()

    def _finished_us(self, member: int) -> int:
        return max(self._engine.now_us, self._busy_us.get(member, 0))


class EagerRebalance(ClassicRebalance):
    """The whole group stops: each member when it notices, all start again when the round has ended."""

    def _first_round(self) -> None:
        self._round(self._dealt.members, self._stop_all, self._start_all)

    def _stop_all(self, member: int) -> int:
        for partition in self._held_by(member):
            self._detach(partition)
        return self._finished_us(member)

    def _start_all(self) -> None:
        for partition, owner in enumerate(self._dealt.owners):
            self._attach(partition, owner)
        self._go_on()


class CooperativeRebalance(ClassicRebalance):
    """Two rounds: nobody stops for the first; what it takes away stops then, and starts when the second has ended.

    What nobody held starts when the first has ended.
    """

    def _first_round(self) -> None:
        self._round(self._dealt.members, lambda _: self._engine.now_us, self._take_away)

    def _take_away(self) -> None:
        holder, owners = self._holder, self._dealt.owners
        moved = [partition for partition, owner in enumerate(owners) if holder[partition] not in (owner, NO_OWNER)]
        members = self._dealt.members.union(holder[partition] for partition in moved)
        self._start_free()
        for partition in moved:
            self._detach(partition)
        if moved:
            self._round(members, self._finished_us, self._start_moved)
        else:
            self._go_on()

    def _start_moved(self) -> None:
        """End the second round. Who kept what a newer plan moves has not been asked yet: that takes further rounds."""
        self._start_free()
        pairs = zip(self._holder, self._dealt.owners, strict=True)
        owners = tuple(owner if holder == NO_OWNER else holder for holder, owner in pairs)
        self._dealt = _Deal(owners, self._dealt.members.union(self._holder) - {NO_OWNER})
        self._go_on()

    def _start_free(self) -> None:
        for partition in self._held_by(NO_OWNER):
            self._attach(partition, self._dealt.owners[partition])


class ShareGroup:
    """Delivery of a share group: owners are ignored, all members serve, and nothing is handed over."""

    def __init__(self, engine: Pool, agenda: Agenda) -> None:
        self._engine = engine
        self._agenda = agenda
        self._members: frozenset[int] = frozenset()
        self._gone: frozenset[int] = frozenset()

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run."""
        self.carry_out(owners, members)

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Let exactly `members`, but for the dead, take events from now on."""
        members -= self._gone
        for replica in sorted(self._members - members):
            self._engine.leave(replica)
        for replica in sorted(members - self._members):
            self._engine.join(replica)
        self._members = members

    def on_death(self, replica: int, evicted_us: int) -> None:
        """Let the others have what `replica` had acquired, from `evicted_us` on."""
        self._members, self._gone = self._members - {replica}, self._gone | {replica}
        self._agenda.at(evicted_us, partial(self._engine.give_back, replica))

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished what it had acquired; None while it is a member."""
        return None if replica in self._members else self._engine.busy_until_us(replica)


RebalanceModel = IncrementalRebalance | ClassicRebalance | ShareGroup
"""Carries owners to the replicas. Owners are replica numbers by partition, of replicas that could serve.

members: all replicas that belong to the group then, owners or not.
"""


def make_rebalance_model(settings: RebalanceSettings, engine: Engine, agenda: Agenda, seed: int) -> RebalanceModel:
    """Return the model of `settings.delivery`, which is none of a share group, with its timing."""
    heartbeats = Heartbeats(round(settings.heartbeat_s * 1e6), seed)
    rebalance_time_us = round(settings.rebalance_time_s * 1e6)
    match settings.delivery:
        case RebalanceProtocol.INCREMENTAL:
            pause_us = round(settings.pause_s * 1e6)
            return IncrementalRebalance(
                engine, agenda, stops_us=lambda _, now_us: now_us, starts_us=lambda _, free_us: free_us + pause_us
            )
        case RebalanceProtocol.KIP848:
            return IncrementalRebalance(engine, agenda, stops_us=heartbeats.next_us, starts_us=heartbeats.next_us)
        case RebalanceProtocol.COOPERATIVE_STICKY:
            return CooperativeRebalance(engine, agenda, heartbeats, rebalance_time_us)
        case _:  # eager, and Faust's consumer, which rebalances eagerly
            return EagerRebalance(engine, agenda, heartbeats, rebalance_time_us)
