"""The simulator's engine in plain Python, with a deque for each partition and a loop for each replica.

Its rules are described in `autoscaler.simulator.engine`. Commands must be valid.
"""

from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.arrivals import Arrivals
from autoscaler.simulator.chance import BLOCK, ServiceTimes
from autoscaler.simulator.engine import NO_OWNER
from autoscaler.simulator.rows import Events


@lru_cache(maxsize=64)
def _drawn(service: ServiceTimes, block: int) -> list[float]:
    """Return the demands of one block of events, µs."""
    return service.demands_us(block * BLOCK, BLOCK).tolist()


def service_us(service: ServiceTimes, event: int, replica: int, started_us: int) -> int:
    """Return the service time of `event` on `replica` if it starts at `started_us`, µs."""
    settings, is_slow = service.settings, service.slow_from_us <= started_us < service.slow_until_us
    slow = settings.slow_factor_of(replica) if is_slow else 1.0
    demand_us = _drawn(service, event // BLOCK)[event % BLOCK]
    return max(1, int(demand_us * slow / settings.speed_of(replica) + 0.5))


def gap_us(service: ServiceTimes, started_us: int) -> int:
    """Return the minimum gap after an event that started at `started_us`; 0 without a shared limit."""
    gaps_us = service.limit_gaps_us or (0,)
    return gaps_us[min(started_us // service.limit_each_us, len(gaps_us) - 1)]


@dataclass(slots=True)
class _Replica:
    number: int
    alive: bool = True
    attached: set[int] = field(default_factory=set)
    serving: int = NO_OWNER
    """Event that it started last."""
    free_us: int = 0
    """End of that event."""
    since_us: int = 0
    """Time `free_us`, or that of the last command after it. The next busy time cannot start earlier."""
    busy_us: int = 0
    uncommitted: list[int] = field(default_factory=list)
    """The event that it started last, until it is committed."""


@dataclass(slots=True)
class _Outcome:
    """First known completion of an event."""

    started_us: int
    done_us: int
    replica: int


class ReferenceEngine:
    """Readable version of `Engine`. Between two commands, events start one after the other in order of time."""

    def __init__(self, partitions: int, service: ServiceTimes) -> None:
        self._service = service
        self.now_us = 0
        self._intended_us: list[int] = []
        self._partition: list[int] = []
        self._waiting: list[deque[int]] = [deque() for _ in range(partitions)]
        """Unstarted events by number, including those that have not arrived."""
        self._owner = [NO_OWNER] * partitions
        self._replicas: list[_Replica] = []
        self._outcomes: dict[int, _Outcome] = {}
        self._arrived = 0
        self._taken = 0
        self._produced = np.zeros(partitions, np.int64)
        self._committed = np.zeros(partitions, np.int64)
        self._last_done_us = 0
        self._open_us = 0
        """Earliest next start under a shared limit."""

    def add_replica(self) -> int:
        """See `Engine`."""
        self._replicas.append(_Replica(len(self._replicas)))
        return len(self._replicas) - 1

    def feed(self, arrivals: Arrivals) -> None:
        """See `Engine`."""
        for intended_us, partition in zip(arrivals.intended_us.tolist(), arrivals.partition.tolist(), strict=True):
            self._waiting[partition].append(len(self._intended_us))
            self._intended_us.append(intended_us)
            self._partition.append(partition)

    def advance(self, until_us: int) -> None:
        """See `Engine`."""
        self._serve(until_us)
        self.now_us = until_us

    def attach(self, partition: int, replica: int) -> None:
        """See `Engine`."""
        owner = self._replicas[replica]
        if self._owner[partition] == replica:
            return
        self.detach(partition)
        self._owner[partition] = replica
        owner.attached.add(partition)
        self._interrupt(owner)

    def detach(self, partition: int) -> None:
        """See `Engine`."""
        if self._owner[partition] != NO_OWNER:
            owner = self._replicas[self._owner[partition]]
            owner.attached.discard(partition)
            self._interrupt(owner)
            self._owner[partition] = NO_OWNER

    def owner(self, partition: int) -> int:
        """See `Engine`."""
        return self._owner[partition]

    def in_service_until_us(self, partition: int) -> int:
        """See `Engine`. If a new owner was attached too early, it is that of the last owner."""
        serving = (r for r in self._replicas if r.serving != NO_OWNER and self._partition[r.serving] == partition)
        return max([self.now_us, *(replica.free_us for replica in serving)])

    def produced(self) -> NDArray[np.int64]:
        """See `Engine`."""
        while self._arrived < len(self._intended_us) and self._intended_us[self._arrived] < self.now_us:
            self._produced[self._partition[self._arrived]] += 1
            self._arrived += 1
        return self._produced.copy()

    def committed(self) -> NDArray[np.int64]:
        """See `Engine`."""
        for replica in self._replicas:
            self._commit_finished(replica)
        return self._committed.copy()

    def busy_us(self) -> list[int] | None:
        """See `Engine`."""
        return [replica.busy_us for replica in self._replicas] if self._service.limit_gaps_us else None

    def kill(self, replica: int) -> None:
        """See `Engine`."""
        dead = self._replicas[replica]
        self._commit_finished(dead)
        for partition in tuple(dead.attached):
            self.detach(partition)
        for event in dead.uncommitted:
            waiting = self._waiting[self._partition[event]]
            self._waiting[self._partition[event]] = deque(sorted([event, *waiting]))
            if self._outcomes[event].done_us > self.now_us:
                del self._outcomes[event]
            if (owner := self._owner[self._partition[event]]) != NO_OWNER:
                self._interrupt(self._replicas[owner])
        dead.uncommitted.clear()
        dead.serving = NO_OWNER
        dead.alive = False

    def drain(self) -> int:
        """See `Engine`. Every partition with events has an owner."""
        self._serve(None)
        self.now_us = max([self.now_us, *(replica.free_us for replica in self._replicas if replica.alive)])
        self.committed()
        return self._last_done_us

    def take(self) -> Events:
        """See `Engine`."""
        first = self._taken
        while self._taken in self._outcomes and self._outcomes[self._taken].done_us <= self.now_us:
            self._taken += 1
        taken = [self._outcomes[event] for event in range(first, self._taken)]
        return Events(
            np.array(self._intended_us[first : self._taken], np.int64),
            np.array(self._partition[first : self._taken], np.int32),
            np.array([outcome.started_us for outcome in taken], np.int64),
            np.array([outcome.done_us for outcome in taken], np.int64),
            np.array([outcome.replica for outcome in taken], np.int32),
        )

    def _interrupt(self, replica: _Replica) -> None:
        """Note that a command concerns a replica."""
        replica.since_us = max(replica.since_us, self.now_us)

    def _serve(self, until_us: int | None) -> None:
        """Start all events that can start before `until_us`; None: all."""
        while following := [one for replica in self._replicas if (one := self._next(replica))]:
            started_us, event, number = min(following)
            if until_us is not None and started_us >= until_us:
                return
            replica = self._replicas[number]
            self._commit(replica)
            self._waiting[self._partition[event]].popleft()
            replica.uncommitted.append(event)
            replica.serving = event
            replica.free_us = started_us + service_us(self._service, event, number, started_us)
            replica.busy_us += replica.free_us - max(replica.since_us, self._intended_us[event])
            replica.since_us = replica.free_us
            self._open_us = started_us + gap_us(self._service, started_us)
            self._outcomes.setdefault(event, _Outcome(started_us, replica.free_us, number))

    def _next(self, replica: _Replica) -> tuple[int, int, int] | None:
        """Return the earliest start at `replica`, its event and number; None if no event waits for it."""
        if not (waiting := self._for(replica)):
            return None
        event = min(events[0] for events in waiting)
        return max(replica.free_us, self._intended_us[event], self.now_us, self._open_us), event, replica.number

    def _for(self, replica: _Replica) -> list[deque[int]]:
        """Return the non-empty queues of the partitions of `replica`."""
        return [self._waiting[p] for p in replica.attached if self._waiting[p]]

    def _commit_finished(self, replica: _Replica) -> None:
        if replica.free_us <= self.now_us:
            self._commit(replica)

    def _commit(self, replica: _Replica) -> None:
        """Commit the finished event."""
        for event in replica.uncommitted:
            self._committed[self._partition[event]] += 1
            self._last_done_us = max(self._last_done_us, replica.free_us)
        replica.uncommitted.clear()
