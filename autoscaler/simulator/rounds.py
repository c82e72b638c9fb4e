"""Deliveries of Kafka's classic protocol: everybody joins a round, and it takes t_r. Eager and cooperative-sticky."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from autoscaler.simulator.agenda import Agenda
from autoscaler.simulator.chance import Heartbeats
from autoscaler.simulator.engine import NOBODY, Engine
from autoscaler.simulator.holdings import Completed, Holdings


@dataclass(frozen=True, slots=True)
class _Deal:
    """What a round hands out: owners by partition, and who belongs to the group."""

    owners: tuple[int, ...]
    members: frozenset[int]


class Rounds(ABC):
    """Implements PlanDelivery, but for what happens in a round.

    Members notice a round at their next heartbeat; who has just become ready joins at once. A member joins as soon as
    it has finished the event in service, if it has to stop for the round. The newest plan counts until all have
    joined; what comes later waits for the next round, which follows at once. The dead are waited for until evicted.
    """

    def __init__(
        self,
        engine: Engine,
        agenda: Agenda,
        completed: Completed,
        heartbeats: Heartbeats,
        rebalance_time_us: int,
    ) -> None:
        self._engine = engine
        self._agenda = agenda
        self._completed = completed
        self._heartbeats = heartbeats
        self._rebalance_time_us = rebalance_time_us
        self._running = False
        self._awaited: set[int] = set()
        self._held: Holdings
        self._dealt: _Deal
        """Handed out by the last round."""
        self._wanted: _Deal
        """To be handed out by the next."""

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run: the owners are in place at once."""
        self._held = Holdings(self._engine, owners, self._completed)
        self._dealt = self._wanted = _Deal(tuple(owners), members)

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """From now on work towards `owners`; that replaces what was wanted before."""
        self._wanted = _Deal(tuple(owners), members)
        if not self._running:
            self._go_on()

    def lost(self, replica: int, evicted_us: int) -> None:
        """Take note that `replica` died now; rounds wait for it until `evicted_us`."""
        self._held.lost(replica, evicted_us)

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished all it was given; None while it belongs to the group."""
        if replica in self._dealt.members or replica in self._wanted.members:
            return None
        return self._held.busy_us.get(replica, 0)

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
        dead = member in self._held.evicted_us
        self._agenda.at(self._engine.now_us if dead else joins_us(member), partial(self._join, member, end))

    def _join(self, member: int, end: Callable[[], None]) -> None:
        evicted_us = self._held.evicted_us.get(member, 0)
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


class Eager(Rounds):
    """The whole group stops: each member when it notices, all start again when the round has ended."""

    def _first_round(self) -> None:
        self._round(self._dealt.members, self._stop_all, self._start_all)

    def _stop_all(self, member: int) -> int:
        for partition, holder in enumerate(self._held.holder):
            if holder == member:
                self._held.stop(partition)
        return max(self._engine.now_us, self._held.busy_us.get(member, 0))

    def _start_all(self) -> None:
        for partition, owner in enumerate(self._dealt.owners):
            self._held.start(partition, owner)
        self._go_on()


class CooperativeSticky(Rounds):
    """Two rounds: nobody stops for the first; what it takes away stops then, and starts when the second has ended.

    What nobody held starts when the first has ended.
    """

    def _first_round(self) -> None:
        self._round(self._dealt.members, lambda _: self._engine.now_us, self._take_away)

    def _take_away(self) -> None:
        """End the first round."""
        holder, owners = self._held.holder, self._dealt.owners
        moved = [partition for partition, owner in enumerate(owners) if holder[partition] not in (owner, NOBODY)]
        members = self._dealt.members.union(holder[partition] for partition in moved)
        self._start_free()
        for partition in moved:
            self._held.stop(partition)
        if moved:
            self._round(members, self._finish_revoked, self._start_moved)
        else:
            self._go_on()

    def _finish_revoked(self, member: int) -> int:
        return max(self._engine.now_us, self._held.busy_us.get(member, 0))

    def _start_moved(self) -> None:
        """End the second round. Who kept what a newer plan moves has not been asked yet: that takes further rounds."""
        self._start_free()
        pairs = zip(self._held.holder, self._dealt.owners, strict=True)
        owners = tuple(owner if holder == NOBODY else holder for holder, owner in pairs)
        self._dealt = _Deal(owners, self._dealt.members.union(self._held.holder) - {NOBODY})
        self._go_on()

    def _start_free(self) -> None:
        for partition, owner in enumerate(self._dealt.owners):
            if self._held.holder[partition] == NOBODY:
                self._held.start(partition, owner)
