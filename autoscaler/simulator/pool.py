"""What serves a share group (KIP-932): one queue, from which every free replica takes the oldest unit of work.

Time, feeding, counting and taking are as in `engine.Engine`. The further rules, which `tests/oracles/reference_pool.py`
carries out in plain Python, equal to the last event:
- A unit is a single event, or with `whole_batches` all events of one partition with one intended time.
- Of several free members the one that has been free longest takes the unit, then the one with the smallest number.
- What was acquired is served to its end, and each event is acknowledged when it is finished.
- What a killed replica had acquired comes before all that waits, once it is given back.
- The order of a partition is not kept.
"""

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator import pool_kernel
from autoscaler.simulator.arrivals import Arrivals
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.engine import NOBODY
from autoscaler.simulator.kernel import first_unfinished
from autoscaler.simulator.rows import NEVER, NONE, EventServer


class Pool(EventServer):
    """Serves as `Engine` does, except that replicas join and leave; nothing is attached."""

    def __init__(self, partitions: int, service: ServiceTimes, *, whole_batches: bool = False) -> None:
        super().__init__(partitions, service)
        self._whole_batches = whole_batches
        self._free = np.empty(0, np.int64)
        """Numbers of the members as a heap: who is free first stands first."""
        self._waiting = 0
        """Number of the first event that nobody has acquired."""
        self._lost: dict[int, int] = {}
        """Killed replica → the first event of what is to be given back."""
        self._returned: list[int] = []
        """First events of what was given back; a heap."""

    def join(self, replica: int) -> None:
        """From now on `replica` takes units."""
        self._replicas["free_us"][replica] = max(self.busy_until_us(replica), self._now_us)
        self._arrange(np.append(self._free, replica))

    def leave(self, replica: int) -> None:
        """From now on `replica` takes nothing; what it has acquired it finishes."""
        self._arrange(self._free[self._free != replica])

    def owner(self, _partition: int) -> int:
        """Return NOBODY: all members serve every partition."""
        return NOBODY

    def busy_until_us(self, replica: int) -> int:
        """Return when `replica` has finished what it acquired."""
        return int(self._replicas["free_us"][replica])

    def kill(self, replica: int) -> None:
        """End `replica` now. What it acquired and did not finish waits until it is given back."""
        self.leave(replica)
        lost = pool_kernel.give_up(*self._state(), replica, self._now_us)
        if lost != NONE:
            self._lost[replica] = lost

    def give_back(self, replica: int) -> None:
        """Let the others have what `replica`, which was killed, did not finish."""
        if replica in self._lost:
            heappush(self._returned, self._lost.pop(replica))

    def feed(self, arrivals: Arrivals) -> None:
        """See `Engine`. Units are formed of what is fed at once."""
        super().feed(arrivals)
        self._collect()
        events, fed = self._events, self._events.loaded
        while events.next_us != NEVER:
            first = events.loaded
            events.load(self._collected_until)
            pool_kernel.form_units(
                events.rows, events.base, self._partitions, first, events.loaded, fed, self._whole_batches
            )

    def advance(self, until_us: int) -> None:
        """See `Engine`."""
        self._serve(until_us)
        self._now_us = until_us
        events = self._events
        self._arrived = pool_kernel.arrive(
            events.rows, events.base, self._partitions, self._arrived, events.loaded, until_us
        )

    def committed(self) -> NDArray[np.int64]:
        """See `Engine`."""
        pool_kernel.commit_all(*self._state(), self._now_us)
        committed: NDArray[np.int64] = self._partitions["committed"].copy()
        return committed

    def drain(self) -> int:
        """See `Engine`. Raises ValueError if work is left and nobody is a member."""
        if (self._waiting < self._events.loaded or self._returned) and not len(self._free):
            raise ValueError("nobody serves what is left in the queue")
        self._serve(NEVER)
        self.advance(max(self._now_us, int(self._replicas["free_us"].max(initial=0))))
        self.committed()
        return int(self._replicas["done_us"].max(initial=0))

    def _arrange(self, members: NDArray[np.int64]) -> None:
        """Make `members` the heap: in order they are one."""
        self._free = members[np.lexsort((members, self._replicas["free_us"][members]))]

    def _serve(self, until_us: int) -> None:
        """Let units be acquired before `until_us`, those that were given back first."""
        if not len(self._free):
            return
        state = (*self._state(), self._service, self._free)
        while self._returned and pool_kernel.acquire(*state, self._returned[0], self._now_us, until_us):
            heappop(self._returned)
        if not self._returned:
            self._waiting = pool_kernel.serve(*state, self._waiting, self._events.loaded, self._now_us, until_us)

    def _collect(self) -> None:
        pool_kernel.commit_all(*self._state(), self._now_us)  # chains lead to unfinished events then
        events, first = self._events, self._collected_until
        end = first_unfinished(events.rows, events.base, first, events.loaded, self._now_us)
        self._collected.append(events.outcomes(first, end))
        self._collected_until = end
