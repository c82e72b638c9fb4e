"""Engine that serves events: replicas are numbered FIFO servers. Time only moves forward, in whole microseconds.

`tests/support/oracles/reference_engine.py` implements the same rules in plain Python, with identical results:
- A replica serves one event at a time. A free replica takes, of the events that have arrived (intended ≤ t) in its
  partitions, the one with the smallest number. If there is none, it waits for the next arrival.
- `attach` and `detach` at t apply to every event that has not started before t. The replica that has started an event
  finishes it. Commands at t precede all starts at t. Events of a partition without owner wait. The order within a
  partition is kept if the next owner is attached after the end of the event in service.
- Each event is committed when it is finished.
- The service time of an event at a replica is its demand × the slow-down at its start / the replica's speed, ≥ 1 µs.
- A shared limit sets a minimum gap between the starts of two events at any replicas. The waiting event
  with the smallest number starts next.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator import kernel
from autoscaler.simulator.arrivals import Agenda
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.rows import NEVER, NONE, EventServer

NO_OWNER: Final = NONE


class Engine(EventServer):
    """Runs the compiled loops of `kernel` in bounded memory."""

    def __init__(self, partitions: int, service: ServiceTimes, *, target_us: int = NEVER) -> None:
        super().__init__(partitions, service, target_us=target_us)
        self._limited = bool(service.limit_gaps_us)
        self._commanded = False
        """Whether commands are pending. All commands of one moment are carried out together."""

    def advance(self, until_us: int) -> None:
        """Serve all events that start before `until_us`, which becomes `now_us`. Raises ValueError for the past."""
        if until_us < self.now_us:
            raise ValueError(f"cannot advance to {until_us} µs: the time is already {self.now_us} µs")
        self._carry_out()
        if self._arrived < self._events.loaded:
            left = kernel.arrive(*self._state(), self._service, self._arrived, until_us)
            self._arrived = self._events.loaded if left == NONE else left
        if self._limited:
            kernel.begin_limited(*self._state()[:3], self._service, self.now_us, until_us)
        self.now_us = until_us

    def attach(self, partition: int, replica: int) -> None:
        """Let `replica` serve `partition` from now on. Raises ValueError if the replica is dead or unknown."""
        self._check_alive(replica)
        if self.owner(partition) == replica:
            return
        self.detach(partition)
        self._partitions["owner"][partition] = replica
        self._concern(partition)

    def detach(self, partition: int) -> None:
        """Leave `partition` without an owner from now on."""
        if self.owner(partition) != NO_OWNER:
            self._concern(partition)
            self._partitions["owner"][partition] = NO_OWNER

    def owner(self, partition: int) -> int:
        """Return the replica that `partition` is attached to, or NO_OWNER."""
        return int(self._partitions["owner"][partition])

    def in_service_until_us(self, partition: int) -> int:
        """Return when the event of `partition` that is in service now is finished, µs, or `now_us` if there is none.

        Several events are in service if a new owner was attached too early. Then return the latest end.
        """
        return kernel.in_service_until(*self._state(), partition, self.now_us)

    def committed(self) -> NDArray[np.int64]:
        """Return the number of events committed until now, by partition."""
        self._carry_out()
        kernel.commit_all(*self._state(), self.now_us)
        committed: NDArray[np.int64] = self._partitions["committed"].copy()
        return committed

    def busy_us(self) -> list[int] | None:
        """Return the busy time of each replica, by its number, µs; None without a shared limit.

        It includes waits for the limit. If a command concerns the replica, the wait before the command is not counted.
        """
        return self._replicas["busy_us"].tolist() if self._limited else None

    def kill(self, replica: int) -> None:
        """End `replica` now. Its partitions are detached, and the event in service is served again.

        Raises ValueError for a replica that does not exist or is dead.
        """
        self._check_alive(replica)
        self._carry_out()
        for partition in np.flatnonzero(self._partitions["owner"] == replica).tolist():
            self.detach(partition)
        returned = kernel.take_started(*self._state(), replica, self.now_us)
        if returned != NONE:
            self._concern(int(self._events.rows["partition"][returned - self._events.base]))
        self._replicas["alive"][replica] = False
        self._carry_out(returned)

    def drain(self) -> int:
        """Serve all remaining events. Return the end of the last event, µs.

        Raises ValueError if events remain in partitions without an owner.
        """
        now_us = self.now_us
        self.advance(NEVER - 1)
        unserved = np.flatnonzero(self._partitions["first"] != NONE)
        if len(unserved):
            raise ValueError(f"partitions {unserved.tolist()} still have events but no owner")
        self.committed()
        done_us = int(self._replicas["done_us"].max(initial=0))
        self.now_us = max(now_us, done_us)
        return done_us

    def _collect(self) -> None:
        events, first = self._events, self._collected_until
        self._store(
            events.outcomes(first, kernel.first_unfinished(events.rows, events.base, first, events.loaded, self.now_us))
        )

    def _oldest_needed(self) -> int:
        return kernel.oldest_needed(*self._state(), self._arrived, self.now_us)

    def _check_alive(self, replica: int) -> None:
        if not (0 <= replica < len(self._replicas) and self._replicas["alive"][replica]):
            raise ValueError(f"replica {replica} does not exist or is dead")

    def _concern(self, partition: int) -> None:
        self._partitions["concerned"][partition] = True
        if self.owner(partition) != NO_OWNER:
            self._replicas["concerned"][self.owner(partition)] = True
        self._commanded = True

    def _carry_out(self, returned: int = NONE) -> None:
        if self._commanded:
            kernel.reassign(*self._state(), self._service, self.now_us, returned)
            self._commanded = False


class Owners:
    """Owners of the partitions. Only this class attaches and detaches partitions.

    A dead replica that was not evicted yet can get partitions. These are not served until it is evicted.
    """

    def __init__(self, engine: Engine, agenda: Agenda) -> None:
        self._engine, self._agenda = engine, agenda
        self._busy_us: dict[int, int] = {}
        """Replica → time at which it finishes the last event of the partitions taken from it, µs."""
        self._evicted_us: dict[int, int] = {}
        """Dead replica → time of its eviction, µs."""

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run in which `owners` are in place."""
        self._holder = list(owners)
        """By partition: the replica that it is attached to, or NO_OWNER."""
        self._free_us = [0] * len(owners)
        """By partition: time at which its last owner releases it, µs. It is in the future while that owner is busy."""
        for partition, owner in enumerate(owners):
            self._engine.attach(partition, owner)

    def on_death(self, replica: int, evicted_us: int) -> None:
        """Record a death. The replica's partitions become free when it is evicted."""
        self._evicted_us[replica] = evicted_us
        for partition in self._held_by(replica):
            self._holder[partition] = NO_OWNER
            self._free_us[partition] = evicted_us

    def _held_by(self, replica: int) -> list[int]:
        return [partition for partition, holder in enumerate(self._holder) if holder == replica]

    def _detach(self, partition: int) -> None:
        owner = self._holder[partition]
        free_us = self._engine.in_service_until_us(partition)
        self._engine.detach(partition)
        self._holder[partition] = NO_OWNER
        self._free_us[partition] = free_us
        self._busy_us[owner] = max(free_us, self._busy_us.get(owner, 0))

    def _attach(self, partition: int, owner: int) -> None:
        if owner in self._evicted_us:
            self._free_us[partition] = max(self._free_us[partition], self._evicted_us[owner])
            return
        self._engine.attach(partition, owner)
        self._holder[partition] = owner
