"""The simulator's pool in plain Python, one unit after the other. The rules stand in `autoscaler.simulator.pool`."""

from collections import deque
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray
from oracles.reference_engine import gap_us, service_us

from autoscaler.simulator.arrivals import Arrivals, check_next
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.engine import NOBODY
from autoscaler.simulator.rows import Served

Unit = tuple[int, ...]
"""Numbers of the events that are acquired together, rising."""


class ReferencePool:
    """`Pool`, written for the reader."""

    def __init__(self, partitions: int, service: ServiceTimes) -> None:
        self._service = service
        self._now_us = self._newest_us = 0
        self._first = 0
        """Number of the event that entry 0 of the next four lists belongs to: what was taken is forgotten."""
        self._intended_us: list[int] = []
        self._partition: list[int] = []
        self._started_us: list[int] = []
        self._outcome: list[tuple[int, int] | None] = []
        """(done_us, replica), once it is certain."""
        self._waiting: deque[Unit] = deque()
        self._returned: list[Unit] = []
        """Of replicas that died, to be served before what waits; a heap, the oldest first."""
        self._acquired: list[Unit] = []
        """By replica: the unit that it took last."""
        self._free_us: list[int] = []
        self._free: list[tuple[int, int]] = []
        """Heap of (when it is free, replica), members only."""
        self._members: set[int] = set()
        self._produced = np.zeros(partitions, np.int64)
        self._committed = np.zeros(partitions, np.int64)
        self._arrived = 0
        self._in_flight: list[int] = []
        self._last_done_us = 0
        self._open_us = 0
        """Nothing is acquired before, under a shared limit."""

    @property
    def now_us(self) -> int:
        """See `Engine`."""
        return self._now_us

    def add_replica(self) -> int:
        """See `Pool`."""
        self._free_us.append(self._now_us)
        self._acquired.append(())
        return len(self._free_us) - 1

    def join(self, replica: int) -> None:
        """See `Pool`."""
        self._members.add(replica)
        self._free_us[replica] = max(self._free_us[replica], self._now_us)
        heappush(self._free, (self._free_us[replica], replica))

    def leave(self, replica: int) -> None:
        """See `Pool`."""
        self._members.discard(replica)
        self._free = [entry for entry in self._free if entry[1] != replica]
        heapify(self._free)

    def owner(self, _partition: int) -> int:
        """See `Pool`."""
        return NOBODY

    def busy_until_us(self, replica: int) -> int:
        """See `Pool`."""
        return self._free_us[replica]

    def kill(self, replica: int) -> None:
        """See `Pool`."""
        self.leave(replica)
        lost = tuple(event for event in self._acquired[replica] if self._done_us(event) > self._now_us)
        for event in lost:
            self._outcome[event - self._first] = None
        self._in_flight = [event for event in self._in_flight if event not in lost]
        self._acquired[replica] = lost
        self._free_us[replica] = self._now_us

    def give_back(self, replica: int) -> None:
        """See `Pool`."""
        if self._acquired[replica]:
            heappush(self._returned, self._acquired[replica])
            self._acquired[replica] = ()

    def feed(self, arrivals: Arrivals) -> None:
        """See `Engine`. Raises ValueError for events out of order, of the past, or of no partition."""
        check_next(arrivals, earliest_us=max(self._now_us, self._newest_us), partitions=len(self._produced))
        if len(arrivals):
            self._newest_us = int(arrivals.intended_us[-1])
        number = self._first + len(self._intended_us)
        self._intended_us += arrivals.intended_us.tolist()
        self._partition += arrivals.partition.tolist()
        self._started_us += [0] * len(arrivals)
        self._outcome += [None] * len(arrivals)
        self._waiting.extend((event,) for event in range(number, number + len(arrivals)))

    def advance(self, until_us: int) -> None:
        """See `Engine`."""
        self._serve(until_us)
        self._now_us = until_us
        while self._arrived < len(self._intended_us) and self._intended_us[self._arrived] < until_us:
            self._produced[self._partition[self._arrived]] += 1
            self._arrived += 1

    def produced(self) -> NDArray[np.int64]:
        """See `Engine`."""
        return self._produced.copy()

    def committed(self) -> NDArray[np.int64]:
        """See `Engine`."""
        later = []
        for event in self._in_flight:
            if self._done_us(event) > self._now_us:
                later.append(event)
            else:
                self._committed[self._partition[event - self._first]] += 1
                self._last_done_us = max(self._last_done_us, self._done_us(event))
        self._in_flight = later
        return self._committed.copy()

    def drain(self) -> int:
        """See `Pool`. Raises ValueError if work is left and nobody is a member."""
        if (self._waiting or self._returned) and not self._members:
            raise ValueError("nobody serves what is left in the queue")
        self._serve(None)
        self.advance(max(self._now_us, *self._free_us, 0))
        self.committed()
        return self._last_done_us

    def take(self) -> Served:
        """See `Engine`."""
        self.committed()  # what is taken is forgotten, so it must have been counted
        taken: list[tuple[int, int]] = []
        for outcome in self._outcome:
            if outcome is None or outcome[0] > self._now_us:
                break
            taken.append(outcome)
        count = len(taken)
        served = Served(
            self._first,
            np.array(self._started_us[:count], np.int64),
            np.array([done_us for done_us, _ in taken], np.int64),
            np.array([replica for _, replica in taken], np.int32),
        )
        for entries in (self._intended_us, self._partition, self._started_us, self._outcome):
            del entries[:count]
        self._first += count
        self._arrived -= count
        return served

    def _done_us(self, event: int) -> int:
        """Return when `event`, which was acquired, is finished; what was taken out long ago counts as past."""
        outcome = self._outcome[event - self._first] if event >= self._first else None
        return self._now_us if outcome is None else outcome[0]

    def _serve(self, until_us: int | None) -> None:
        """Let units be acquired that are before `until_us`; None: all."""
        while self._free and (self._returned or self._waiting):
            unit = self._returned[0] if self._returned else self._waiting[0]
            free_us, replica = self._free[0]
            at_us = max(free_us, self._intended_us[unit[0] - self._first], self._now_us, self._open_us)
            if until_us is not None and at_us >= until_us:
                return
            self._open_us = at_us + gap_us(self._service, at_us)
            heappop(self._free)
            if self._returned:
                heappop(self._returned)
            else:
                self._waiting.popleft()
            for event in unit:
                self._started_us[event - self._first] = at_us
                at_us += service_us(self._service, event, replica, at_us)
                self._outcome[event - self._first] = (at_us, replica)
            self._in_flight += unit
            self._acquired[replica] = unit
            self._free_us[replica] = at_us
            heappush(self._free, (at_us, replica))
