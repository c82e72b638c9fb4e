"""Models of Kafka's classic rebalance protocol: eager and cooperative."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from autoscaler.simulator.arrivals import Agenda
from autoscaler.simulator.chance import Heartbeats
from autoscaler.simulator.engine import NO_OWNER, Engine, Owners


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
        self._heartbeats, self._rebalance_time_us = heartbeats, rebalance_time_us
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

    They start when the second rebalance has ended. Partitions without an owner start when the first has ended.
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
