"""The replicas of a simulated group: who was requested, who is ready, who costs money, how fast they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from autoscaler.estimation.service_rates import ServiceRates, WorkCounters
from autoscaler.simulator.settings import ServiceSettings
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.replica_classes import ALIKE, ReplicaClass, class_of


@dataclass(slots=True)
class Member:
    """One life of a replica. A name that is requested again after its end is another one."""

    name: str
    number: int
    """At the engine."""
    ready: bool = False
    planned: bool = True
    """Named by the newest plan; else it is being removed."""


class Members:
    """All replicas that cost money, in the order of their requests, and the record of those that ever did."""

    def __init__(self, classes: Sequence[ReplicaClass] = ALIKE, *, keep: bool = True) -> None:
        """classes: that they have. keep: off, and no changes are recorded."""
        self._classes = classes
        self._keep = keep
        self._leaving: list[Member] = []
        self._present: dict[str, Member] = {}
        self.names: list[str] = []
        """By replica number."""
        self.requested: list[tuple[int, int]] = []
        """(µs, replicas paid for from then on)."""
        self.paid: list[tuple[int, float]] = []
        """(µs, sum of their prices)."""
        self.changes: list[ReplicaChanged] = []
        """at_us: µs since the start of the run."""

    def __contains__(self, member: Member) -> bool:
        return self._present.get(member.name) is member

    def get(self, name: str) -> Member | None:
        """Return the replica of that name, also while it is being removed; None when there is none."""
        return self._present.get(name)

    @property
    def planned(self) -> list[Member]:
        """Requested and not being removed, in the order of their requests."""
        return [member for member in self._present.values() if member.planned]

    @property
    def leaving(self) -> list[Member]:
        """Being removed."""
        return [*self._leaving]

    def request(self, name: str, number: int, at_us: int) -> Member:
        """Add a replica; from now on it costs money. Its number must be the next one."""
        assert number == len(self.names), f"replica {number} is the {len(self.names) + 1}th"
        member = self._present[name] = Member(name, number)
        self.names.append(name)
        self._note(member, ReplicaChange.REQUESTED, at_us)
        return member

    def plan(self, names: Sequence[str], at_us: int) -> None:
        """Take note of who shall stay."""
        wanted = set(names)
        for member in self._present.values():
            member.planned = member.name in wanted
        self._leaving = [member for member in self._present.values() if not member.planned]

    def make_ready(self, member: Member, at_us: int) -> None:
        """Take note that it could serve now."""
        member.ready = True
        self._note(member, ReplicaChange.READY, at_us)

    def remove(self, member: Member, at_us: int, why: ReplicaChange) -> None:
        """Take it out: it costs nothing any more. why: LEFT or DIED."""
        del self._present[member.name]
        if not member.planned:
            self._leaving.remove(member)
        self._note(member, why, at_us)

    def _note(self, member: Member, change: ReplicaChange, at_us: int) -> None:
        if self._keep:
            self.changes.append(ReplicaChanged(at_us=at_us, replica=member.name, change=change))
        _from_now(self.requested, at_us, len(self._present))
        _from_now(self.paid, at_us, sum(class_of(name, self._classes).price for name in self._present))


N = TypeVar("N", int, float)


def _from_now(course: list[tuple[int, N]], at_us: int, value: N) -> None:
    """Take note of a value that holds from `at_us` on."""
    if course and course[-1][0] == at_us:
        course.pop()
    if not course or course[-1][1] != value:
        course.append((at_us, value))


class LearnedRates:
    """μ of each replica, events/s, learned from how many events it has served and how long it was busy with them.

    An engine counts events by partition. Those of a partition that changed its owner since the last reading are
    nobody's. Busy time is what so many events take that replica on average: neither chance nor a slow-down of all
    replicas shows in it. Under a shared limit it is what they took, the wait for their turn included. Where the
    settings make all replicas alike there is nothing to learn, and μ is known from the start. told: everybody is told
    so many times the μ that is known.
    """

    def __init__(self, service: ServiceSettings, partitions: int, told: float = 1.0) -> None:
        self._service = service
        self._speeds = service.speeds
        self._told = told
        self._classes = service.replica_classes
        self._at_speed_1 = self._classes[0].speed / (service.service_time_s + service.overhead_s)
        self._rates = ServiceRates(self._at_speed_1, service.relative_speed_of, alike=service.rates_alike)
        self.alike = len({*service.speeds}) == len(self._classes) == 1 and not (
            service.slow_replicas or service.shared_limits
        )
        """All replicas are, and always will be."""
        self._committed = np.zeros(partitions, np.int64)
        self._owners = np.full(partitions, -1)
        self._faster: dict[int, float] = {}
        """By replica number: how many times as fast as the first class its own is."""
        self._served: dict[int, int] = {}
        """Events by replica number."""
        self._lost_s: dict[int, float] = {}
        """By replica number: seconds that its events took longer because it alone was slow."""

    def observe(
        self,
        members: Sequence[Member],
        owners: Sequence[int],
        committed: NDArray[np.int64],
        at_s: float,
        busy_us: Sequence[int] | None,
    ) -> None:
        """Take in one reading: who is planned, and owner (replica number) and events committed by partition.

        busy_us: by replica number, where the engine counts it.
        """
        now = np.array(owners)
        self._faster |= {one.number: self._service.relative_speed_of(one.name) for one in members}
        slow = self._service.slow_from_s <= at_s < self._service.slow_until_s
        stayed = np.flatnonzero(now == self._owners)
        for partition, events in zip(stayed, (committed - self._committed)[stayed], strict=True):
            owner = int(now[partition])
            self._served[owner] = self._served.get(owner, 0) + int(events)
            if slow and owner in self._service.slow_replicas:
                longer_s = int(events) * (self._service.slow_factor - 1) / self._at_speed(owner)
                self._lost_s[owner] = self._lost_s.get(owner, 0.0) + longer_s
        self._owners, self._committed = now, committed
        self._rates.keep([member.name for member in members])
        for member in members:
            if member.ready:
                served = self._served.get(member.number, 0)
                busy_s = served / self._at_speed(member.number) + self._lost_s.get(member.number, 0.0)
                if busy_us is not None:
                    busy_s = busy_us[member.number] / 1e6
                self._rates.observe(WorkCounters(member.name, str(member.number), served, round(busy_s * 1e6)))

    @property
    def group(self) -> float:
        """Of the typical replica, events/s."""
        if self.alike:
            return self._told * self._at_speed_1 * sum(self._speeds) / len(self._speeds)
        return self._told * self._rates.service_rate

    def of(self, member: Member) -> float | None:
        """Of a replica that is known to differ, events/s; None: as the typical one, or not known."""
        own = None if self.alike else self._rates.own(member.name)
        return None if own is None else self._told * own

    def _at_speed(self, number: int) -> float:
        """Return what a replica serves in a second while it is not slow."""
        return self._at_speed_1 * self._faster.get(number, 1.0) * self._service.speed_of(number)
