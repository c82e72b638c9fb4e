"""Ways to carry out a plan, by name: our own, KIP-848's, the rounds of Kafka's classic protocol, a share group's."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from autoscaler.simulator.agenda import Agenda
from autoscaler.simulator.chance import Heartbeats
from autoscaler.simulator.engine import NOBODY, Engine
from autoscaler.simulator.handovers import Completed, Handovers, Owners
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.settings import DeliverySettings
from contracts.delivery import Delivery


class PlanDelivery(Protocol):
    """Carries owners to the replicas. Owners are replica numbers by partition, of replicas that could serve.

    members: all replicas that belong to the group then, owners or not.
    """

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run: the owners are in place at once."""
        ...

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """From now on work towards `owners`; that replaces what was wanted before."""
        ...

    def lost(self, replica: int, evicted_us: int) -> None:
        """Take note that `replica` died now; the group takes it for alive until `evicted_us`."""
        ...

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished all it was given; None while it holds something or is to get something."""
        ...


def make_delivery(
    settings: DeliverySettings, engine: Engine, agenda: Agenda, completed: Completed, seed: int
) -> PlanDelivery:
    """Return the model of `settings.delivery`, which is none of a share group, with its timing."""
    heartbeats = Heartbeats(round(settings.heartbeat_s * 1e6), seed)
    rebalance_time_us = round(settings.rebalance_time_s * 1e6)
    match settings.delivery:
        case Delivery.INCREMENTAL:
            pause_us = round(settings.pause_s * 1e6)
            return Handovers(
                engine,
                agenda,
                completed,
                stops_us=lambda _, now_us: now_us,
                starts_us=lambda _, free_us: free_us + pause_us,
            )
        case Delivery.KIP848:
            return Handovers(engine, agenda, completed, stops_us=heartbeats.next_us, starts_us=heartbeats.next_us)
        case Delivery.COOPERATIVE_STICKY:
            return CooperativeSticky(engine, agenda, completed, heartbeats, rebalance_time_us)
        case _:  # eager, and Faust's consumer, which rebalances eagerly
            return Eager(engine, agenda, completed, heartbeats, rebalance_time_us)


@dataclass(frozen=True, slots=True)
class _Deal:
    """What a round hands out: owners by partition, and who belongs to the group."""

    owners: tuple[int, ...]
    members: frozenset[int]


class Rounds(Owners, ABC):
    """Implements PlanDelivery by Kafka's classic protocol: everybody joins a round, and it takes t_r.

    Members notice a round at their next heartbeat; who has just become ready joins at once. A member joins as soon as
    it has finished the event in service, if it has to stop for the round. The newest plan counts until all have
    joined; what comes later waits for the next round, which follows at once. The dead are waited for until evicted.
    """

    def __init__(
        self, engine: Engine, agenda: Agenda, completed: Completed, heartbeats: Heartbeats, rebalance_time_us: int
    ) -> None:
        super().__init__(engine, agenda, completed)
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
        """Begin a round if something is left to be delivered."""
        self._running = self._wanted != self._dealt
        if self._running:
            self._first_round()

    @abstractmethod
    def _first_round(self) -> None:
        """Begin to deliver what is wanted."""

    def _round(self, members: Iterable[int], joins_us: Callable[[int], int], end: Callable[[], None]) -> None:
        """Let `members` join; `end` is called t_r after the last. joins_us: told who notices, returns when it joins."""
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
        """Return when `member` has finished what was taken from it."""
        return max(self._engine.now_us, self._busy_us.get(member, 0))


class Eager(Rounds):
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


class CooperativeSticky(Rounds):
    """Two rounds: nobody stops for the first; what it takes away stops then, and starts when the second has ended.

    What nobody held starts when the first has ended.
    """

    def _first_round(self) -> None:
        self._round(self._dealt.members, lambda _: self._engine.now_us, self._take_away)

    def _take_away(self) -> None:
        """End the first round."""
        holder, owners = self._holder, self._dealt.owners
        moved = [partition for partition, owner in enumerate(owners) if holder[partition] not in (owner, NOBODY)]
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
        owners = tuple(owner if holder == NOBODY else holder for holder, owner in pairs)
        self._dealt = _Deal(owners, self._dealt.members.union(self._holder) - {NOBODY})
        self._go_on()

    def _start_free(self) -> None:
        for partition in self._held_by(NOBODY):
            self._attach(partition, self._dealt.owners[partition])


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
