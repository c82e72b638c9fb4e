"""Engine of a share group (KIP-932): one queue, from which every free replica takes the oldest event.

Time, feeding, counting and outcomes are as in `engine.Engine`. Further rules:
- The member that has been free longest takes the next event. Ties go to the smallest number.
- An acquired event is served to its end, and acknowledged when it is finished.
- The event that a killed replica had acquired precedes all waiting ones, once it is given back.
- A shared limit sets a minimum gap between two acquisitions.
- The order within a partition is not kept.

All members take from one queue. The member that is free first acquires the next event, whose outcome is then known.
Event e is in row e − base. The loops are compiled.
"""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.kernel import close_gate, commit, commit_all, first_unfinished, service_us
from autoscaler.simulator.rows import NEVER, NONE, EventServer, Rows

Ints = NDArray[np.int64]


class Pool(EventServer):
    """An engine like `Engine`, except that replicas join and leave and own no partitions."""

    def __init__(self, partitions: int, service: ServiceTimes, *, target_us: int = NEVER) -> None:
        super().__init__(partitions, service, target_us=target_us)
        self._members = np.empty(0, np.int64)
        """Numbers of the members, ascending."""
        self._waiting = 0
        """Number of the first event that no member has acquired."""
        self._lost: dict[int, int] = {}
        """Killed replica → event that will be given back."""
        self._returned: list[int] = []
        """Heap of the events that were given back."""

    def join(self, replica: int) -> None:
        """Let `replica` take events from now on."""
        self._replicas["free_us"][replica] = max(self.busy_until_us(replica), self.now_us)
        self._members = np.union1d(self._members, [replica])

    def leave(self, replica: int) -> None:
        """Let `replica` take no further events. It finishes its acquired event."""
        self._members = self._members[self._members != replica]

    def busy_until_us(self, replica: int) -> int:
        """Return when `replica` has finished its acquired event, µs."""
        return int(self._replicas["free_us"][replica])

    def busy_us(self) -> None:
        """Return None, because the busy time is not counted."""

    def kill(self, replica: int) -> None:
        """End `replica` now. Its unfinished event waits for `give_back`."""
        self.leave(replica)
        lost = give_up(*self._state(), replica, self.now_us)
        if lost != NONE:
            self._lost[replica] = lost

    def give_back(self, replica: int) -> None:
        """Return the unfinished event of the killed `replica` to the queue."""
        if replica in self._lost:
            heappush(self._returned, self._lost.pop(replica))

    def advance(self, until_us: int) -> None:
        """See `Engine`."""
        self._serve(until_us)
        self.now_us = until_us
        rows = self._events.rows[self._arrived - self._events.base : self._events.loaded - self._events.base]
        arrived = rows["partition"][: rows["intended_us"].searchsorted(until_us)]
        self._partitions["produced"] += np.bincount(arrived, minlength=len(self._partitions))
        self._arrived += len(arrived)

    def committed(self) -> NDArray[np.int64]:
        """See `Engine`."""
        commit_all(*self._state(), self.now_us)
        committed: NDArray[np.int64] = self._partitions["committed"].copy()
        return committed

    def drain(self) -> int:
        """See `Engine`. Raises ValueError if events remain and there is no member."""
        if (self._waiting < self._events.loaded or self._returned) and not len(self._members):
            raise ValueError("the queue still has events but the group has no member")
        self._serve(NEVER)
        self.advance(max(self.now_us, int(self._replicas["free_us"].max(initial=0))))
        self.committed()
        return int(self._replicas["done_us"].max(initial=0))

    def _serve(self, until_us: int) -> None:
        if not len(self._members):
            return
        self._service[0]["open_us"] = max(self._service[0]["open_us"], self.now_us)
        rows, base, replicas, partitions = self._state()
        state = rows[: self._events.loaded - base], base, replicas, partitions, self._service, self._members
        while self._returned and acquire(*state, self._returned[0], until_us):
            heappop(self._returned)
        if not self._returned:
            self._waiting = serve(*state, self._waiting, until_us)

    def _collect(self) -> None:
        commit_all(*self._state(), self.now_us)  # first, so that only rows of acquired events are retained
        events, first = self._events, self._collected_until
        end = first_unfinished(events.rows, events.base, first, events.loaded, self.now_us)
        self._store(events.outcomes(first, end))

    def _oldest_needed(self) -> int:
        return self._collected_until


@compiled
def give_up(events: Rows, base: int, replicas: Rows, partitions: Rows, replica: int, now_us: int) -> int:
    """Commit the finished event of a killed replica. Return its unfinished event, which is served again, or NONE."""
    commit(events, base, replicas, partitions, replica, now_us)
    lost = int(replicas[replica].first)
    replicas[replica].first = NONE
    replicas[replica].free_us = now_us
    if lost != NONE:
        events[lost - base].done_us = NEVER
    return lost


@compiled
def acquire(
    events: Rows, base: int, replicas: Rows, partitions: Rows, service: Rows, members: Ints, event: int, until_us: int
) -> bool:
    """Let the member that is free first serve `event`, if it can start before `until_us`. Return whether it can."""
    member, row = members[0], event - base
    for other in members:
        if replicas[other].free_us < replicas[member].free_us:
            member = other
    at_us = max(replicas[member].free_us, events[row].intended_us, service[0].open_us)
    if at_us >= until_us:
        return False
    if service[0].gap_us:
        close_gate(service, at_us)
    commit(events, base, replicas, partitions, member, at_us)
    replicas[member].first = event
    events[row].next = NONE
    events[row].started_us = at_us
    at_us += service_us(service, events[row].demand_us, replicas, member, at_us)
    events[row].done_us = at_us
    events[row].replica = member
    replicas[member].free_us = at_us
    return True


@compiled
def serve(
    events: Rows, base: int, replicas: Rows, partitions: Rows, service: Rows, members: Ints, event: int, until_us: int
) -> int:
    """Let members acquire the events from `event` on before `until_us`. Return the next event."""
    while event < base + len(events) and acquire(events, base, replicas, partitions, service, members, event, until_us):
        event += 1
    return event
