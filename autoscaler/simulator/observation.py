"""What can be seen: offsets, now or as they were some time ago, and μ of the replicas, as it is learned."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.estimation.service_rates import ServiceRates, WorkCounters
from autoscaler.model import PartitionLoad, RecentArrivals, begin_offset_s
from autoscaler.simulator.arrivals import Agenda
from autoscaler.simulator.engine import Engine
from autoscaler.simulator.members import Member
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings

SAMPLES: Final = 4
"""In a slot: as often end offsets are read live."""
Ints = NDArray[np.int64]
Slots = Callable[[Ints], Ints]
"""Edges (µs) → events between each and the next, shape (slots, partitions)."""


class ObservedOffsets(NamedTuple):
    """What a look tells."""

    loads: tuple[PartitionLoad, ...]
    """By partition."""
    recent: RecentArrivals
    late: Ints
    """Events finished too late since the look that was seen before, by replica."""


class _Sample(NamedTuple):
    at_us: int
    lag: Ints
    """By partition."""
    late: Ints
    """By replica, since the start of the run."""


class OffsetObserver:
    """Looks at offsets and remembers the looks until they are old enough to be seen."""

    def __init__(self, counters: Engine | Pool, slots: Slots, settings: SimulationSettings) -> None:
        self._counters = counters
        self._slots = slots
        self._commit_age_us = round(settings.commit_age_s * 1e6)
        self._interval_us = round(settings.decision_interval_s * 1e6)
        self._count = max(1, round(settings.decision_interval_s / settings.slot_s))
        self._slot_s = self._interval_us / self._count / 1e6
        self._delay_us = round(settings.observation_delay_s * 1e6)
        self._samples: deque[_Sample] = deque()
        self._seen_us: int | None = None
        self._late = np.zeros(0, np.int64)
        self._commits: deque[list[Ints]] = deque()
        """For each look to come that sees commits late: the commits, once they are read."""

    def schedule_sample(self, look_us: int, agenda: Agenda, *, first: bool = False) -> None:
        """Prepare for a look to come, later than those expected before: read its commits in time.

        first: the look is earlier than all those.
        """
        if self._commit_age_us:
            notes: list[Ints] = []
            (self._commits.appendleft if first else self._commits.append)(notes)
            read_us = max(self._counters.now_us, look_us - self._commit_age_us)
            agenda.at(read_us, lambda: notes.append(self._counters.committed()))

    def sample(self) -> None:
        """Read the offsets as they are now; commits as they were noted, where they were."""
        counters = self._counters
        lag = counters.produced() - (self._commits.popleft()[0] if self._commits else counters.committed())
        self._samples.append(_Sample(counters.now_us, lag, counters.late()))

    def observe(self) -> ObservedOffsets:
        """Return the newest look that is old enough.

        Whoever wants to see at t must have let look at t − delay, or at the start where that is later.
        """
        if not self._delay_us:
            self.sample()
        latest_us = max(0, self._counters.now_us - self._delay_us)
        while len(self._samples) > 1 and self._samples[1].at_us <= latest_us:
            self._samples.popleft()
        at_us, lag, late = self._samples[0]
        newly = late.copy()
        newly[: len(self._late)] -= self._late
        self._late = late
        recent, since_us = self._since_last(at_us)
        self._seen_us = at_us
        rates = (np.add.reduce(recent.counts) / (since_us / 1e6)).tolist()
        loads = tuple(map(PartitionLoad, range(len(rates)), rates, lag.tolist()))
        return ObservedOffsets(loads, recent, newly)

    def arrivals(self) -> RecentArrivals:
        """Return how events lay since the look that was seen last, as it is known now."""
        return self._since_last(self._counters.now_us)[0]

    def _since_last(self, until_us: int) -> tuple[RecentArrivals, int]:
        """Return how events lay since the last look that was seen, and how long ago that was, µs."""
        since_us = self._interval_us if self._seen_us is None else until_us - self._seen_us
        if since_us <= 0:  # the same look again
            since_us = self._interval_us
        edges_us = self._edges_us(until_us, since_us)
        count = len(edges_us) - 1
        inside = np.arange(count * SAMPLES + 1) / SAMPLES
        samples_us = np.ceil(np.interp(inside, np.arange(count + 1), edges_us)).astype(np.int64)
        cells = self._slots(samples_us)
        slots = np.repeat(np.arange(count), SAMPLES)
        starts_s = self._slot_s * (slots - count)
        begin_s = begin_offset_s((samples_us[:-1] - until_us) / 1e6 - starts_s, cells.sum(axis=1), slots)
        return RecentArrivals(self._slot_s, cells.reshape(count, SAMPLES, -1).sum(axis=1), begin_s), since_us

    def _edges_us(self, until_us: int, since_us: int) -> Ints:
        slot_us = self._interval_us / self._count
        first_us, count = until_us - since_us, max(1, round(since_us / slot_us))
        inner = first_us + np.arange(1, count) * slot_us
        return np.concatenate(([first_us], np.ceil(inner), [until_us])).astype(np.int64)


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
        self._at_speed_1 = 1 / (service.service_time_s + service.overhead_s)
        self._rates = ServiceRates(self._at_speed_1)
        self.alike = len({*service.speeds}) == 1 and not (service.slow_replicas or service.shared_limits)
        """All replicas are, and always will be."""
        self._committed = np.zeros(partitions, np.int64)
        self._owners = np.full(partitions, -1)
        self._served: dict[int, int] = {}
        self._lost_s: dict[int, float] = {}
        """By replica number: seconds that its events took longer because it alone was slow."""

    def observe(
        self, members: Sequence[Member], owners: Sequence[int], committed: Ints, at_s: float, busy_us: list[int] | None
    ) -> None:
        """Take in one reading: who is planned, and owner (replica number) and events committed by partition.

        busy_us: by replica number, where the engine counts it.
        """
        now = np.array(owners)
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
        own = None if self.alike else self._rates.own_rate(member.name)
        return None if own is None else self._told * own

    def _at_speed(self, number: int) -> float:
        return self._at_speed_1 * self._service.speed_of(number)
