"""Observations of a simulated group: present or delayed offsets, and learned service rates (μ)."""

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
"""Reads of the end offsets per slot, as in a live run."""
Ints = NDArray[np.int64]
Slots = Callable[[Ints], Ints]
"""Edges (µs) → events between adjacent edges, shape (slots, partitions)."""


class ObservedOffsets(NamedTuple):
    """Result of an observation."""

    loads: tuple[PartitionLoad, ...]
    """Load of each partition."""
    recent: RecentArrivals
    late: Ints
    """Late events since the previous observation, by replica."""


class _Sample(NamedTuple):
    at_us: int
    lag: Ints
    """Lag of each partition, events."""
    late: Ints
    """Late events by replica, since the start of the run."""


class OffsetObserver:
    """Samples offsets, and retains the samples until they are old enough to be observed."""

    def __init__(self, counters: Engine | Pool, slots: Slots, settings: SimulationSettings) -> None:
        self._counters, self._slots = counters, slots
        self._commit_age_us = round(settings.commit_age_s * 1e6)
        self._interval_us = round(settings.decision_interval_s * 1e6)
        self._count = max(1, round(settings.decision_interval_s / settings.slot_s))
        self._slot_s = self._interval_us / self._count / 1e6
        self._delay_us = round(settings.observation_delay_s * 1e6)
        self._samples: deque[_Sample] = deque()
        self._observed_us: int | None = None
        self._late = np.zeros(0, np.int64)
        self._produced = (-1, -1)
        """Events that had arrived at the last two calls of `arrivals`."""
        self._commits: deque[list[Ints]] = deque()
        """For each scheduled sample with delayed commits: the commits, once they are read."""

    def schedule_sample(self, sample_us: int, agenda: Agenda, *, first: bool = False) -> None:
        """Schedule the read of a sample's commits. It must be later than all scheduled samples (`first`: earlier)."""
        if self._commit_age_us:
            notes: list[Ints] = []
            (self._commits.appendleft if first else self._commits.append)(notes)
            read_us = max(self._counters.now_us, sample_us - self._commit_age_us)
            agenda.at(read_us, lambda: notes.append(self._counters.committed()))

    def sample(self) -> None:
        """Read the present offsets. Use the scheduled commits if there are any."""
        counters = self._counters
        lag = counters.produced() - (self._commits.popleft()[0] if self._commits else counters.committed())
        self._samples.append(_Sample(counters.now_us, lag, counters.late()))

    def observe(self) -> ObservedOffsets:
        """Return the newest sample that is at least as old as the observation delay.

        An observation at t requires a sample at t − delay, or at the start of the run if that is later.
        """
        if not self._delay_us:
            self.sample()
        latest_us = max(0, self._counters.now_us - self._delay_us)
        while len(self._samples) > 1 and self._samples[1].at_us <= latest_us:
            self._samples.popleft()
        at_us, lag, late = self._samples[0]
        late_since = late.copy()
        late_since[: len(self._late)] -= self._late
        self._late = late
        recent, since_us = self._since_last(at_us)
        self._observed_us = at_us
        rates = (np.add.reduce(recent.counts) / (since_us / 1e6)).tolist()
        loads = tuple(map(PartitionLoad, range(len(rates)), rates, lag.tolist()))
        return ObservedOffsets(loads, recent, late_since)

    def arrivals(self) -> RecentArrivals | None:
        """Return the arrivals since the last observed sample until now, without `begin_s`.

        None: nothing has arrived since the call before the last one. Then a policy would say the same again.
        """
        now_us, produced = self._counters.now_us, int(self._counters.produced().sum())
        before, self._produced = self._produced, (self._produced[1], produced)
        if produced == before[0]:
            return None
        return RecentArrivals(self._slot_s, self._slots(self._edges_us(now_us, self._since_us(now_us))), 0.0)

    def _since_us(self, until_us: int) -> int:
        since_us = self._interval_us if self._observed_us is None else until_us - self._observed_us
        return since_us if since_us > 0 else self._interval_us  # 0: the same sample again

    def _since_last(self, until_us: int) -> tuple[RecentArrivals, int]:
        """Return the arrivals since the last observed sample, and the time since then, µs."""
        edges_us = self._edges_us(until_us, since_us := self._since_us(until_us))
        count = len(edges_us) - 1
        parts = np.arange(count * SAMPLES + 1) / SAMPLES
        samples_us = np.ceil(np.interp(parts, np.arange(count + 1), edges_us)).astype(np.int64)
        cells = self._slots(samples_us)
        slots = np.repeat(np.arange(count), SAMPLES)
        starts_s = self._slot_s * (slots - count)
        begin_s = begin_offset_s((samples_us[:-1] - until_us) / 1e6 - starts_s, cells.sum(axis=1), slots)
        return RecentArrivals(self._slot_s, cells.reshape(count, SAMPLES, -1).sum(axis=1), begin_s), since_us

    def _edges_us(self, until_us: int, since_us: int) -> Ints:
        slot_us = self._interval_us / self._count
        edges_us = np.arange(max(1, round(since_us / slot_us)) + 1) * slot_us + (until_us - since_us)
        edges_us[-1] = until_us
        return np.asarray(np.ceil(edges_us), np.int64)


class LearnedRates:
    """Learns μ of each replica, events/s, from the events that it has served and its busy time.

    An engine counts events by partition. Events of a partition that has changed its owner since the last observation
    are not counted. Busy time is their number × the mean service time at that replica, with its own slow-down but not
    a slow-down of all replicas. Under a shared limit it is the real time, including the wait for the limit. If the
    settings make all replicas equal, μ is known from the start.
    factor: multiplies every μ that policies get.
    """

    def __init__(self, service: ServiceSettings, partitions: int, factor: float = 1.0) -> None:
        self._service = service
        self._speeds = service.speeds
        self._factor = factor
        self._at_speed_1 = 1 / (service.service_time_s + service.overhead_s)
        self._rates = ServiceRates(self._at_speed_1)
        self.alike = len({*service.speeds}) == 1 and not (service.slow_replicas or service.shared_limits)
        """Whether all replicas have the same μ during the whole run."""
        self._committed = np.zeros(partitions, np.int64)
        self._owners = np.full(partitions, -1)
        self._served: dict[int, int] = {}
        self._lost_s: dict[int, float] = {}
        """Replica number → additional seconds of its events while it alone was slow."""

    def observe(
        self, members: Sequence[Member], owners: Sequence[int], committed: Ints, at_s: float, busy_us: list[int] | None
    ) -> None:
        """Add one observation: planned members, and by partition its owner (replica number) and committed events.

        busy_us: by replica number, if the engine counts it.
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
        """μ of the typical replica, events/s."""
        if self.alike:
            return self._factor * self._at_speed_1 * sum(self._speeds) / len(self._speeds)
        return self._factor * self._rates.service_rate

    def of(self, member: Member) -> float | None:
        """Return μ of a replica that differs from the typical one, events/s; None for all others."""
        own = None if self.alike else self._rates.own_rate(member.name)
        return None if own is None else self._factor * own

    def _at_speed(self, number: int) -> float:
        return self._at_speed_1 * self._service.speed_of(number)
