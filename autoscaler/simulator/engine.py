"""What serves events: replicas as numbered FIFO servers. Time only moves forward, in whole microseconds.

The rules, which `tests/support/oracles/reference_engine.py` carries out in plain Python, equal to the last event:
- A replica serves one event at a time. When free at t it takes, of the events that arrived (intended ≤ t) in the
  partitions attached to it, the one with the smallest number; with none it waits for the next arrival.
- `attach` and `detach` at t hold for every event whose service has not started before t; one in service is finished by
  the replica that began it. A command at t is carried out before anything starts at t. Events of a partition that is
  attached nowhere wait; order within a partition is always kept, for the next owner is attached later than that.
- Work is polled in batches: a free replica with work polls up to `poll_events` of the events that have arrived and
  commits them all when the last of them is finished. A command that gives a replica a partition or takes one from it
  closes its batch: what was polled and has not begun is polled again. poll_events = 1: each event is committed when it
  is finished.
- Service of event k by replica r, started at s, takes its demand × the slow-down of r at s / its speed, at least 1 µs.
- Under a shared limit the next event, of any replica, starts after the gap at least; of those that wait for their turn
  it is the one with the smallest number.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator import kernel
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.rows import NEVER, NONE, EventServer, ServedEvents

NO_OWNER: Final = NONE


class Engine(EventServer):
    """Serves on the loops of `kernel`, at machine speed and in bounded memory."""

    def __init__(self, partitions: int, service: ServiceTimes, *, poll_events: int = 1, target_us: int = NEVER) -> None:
        """Raise ValueError for less than one partition or one event."""
        if partitions < 1 or poll_events < 1:
            raise ValueError(f"{partitions} partitions and polls of {poll_events} events: both must be at least 1")
        super().__init__(partitions, service, poll_events=poll_events, target_us=target_us)
        self._limited = bool(service.limit_gaps_us)
        self._commanded = False
        """Commands were given that have not been carried out: that is done once for all of one moment."""
        self._repeated: dict[int, ServedEvents] = {}
        """Outcome of events that were finished and must be served again."""

    def advance(self, until_us: int) -> None:
        """Serve everything that starts before `until_us`, which becomes `now_us`. Raises ValueError for the past."""
        if until_us < self.now_us:
            raise ValueError(f"time does not go back from {self.now_us} to {until_us} µs")
        self._carry_out()
        while self._events.next_us < until_us:
            self._arrive(until_us)
            self.now_us = self._events.next_us
            self._collect()
            self._events.load(kernel.oldest_needed(*self._state(), self._arrived, self.now_us))
        self._arrive(until_us)
        self.now_us = until_us

    def attach(self, partition: int, replica: int) -> None:
        """From now on `replica` serves `partition`. Raises ValueError for one that does not exist or was killed."""
        self._check_alive(replica)
        if self.owner(partition) == replica:
            return
        self.detach(partition)
        self._partitions["owner"][partition] = replica
        self._concern(partition)

    def detach(self, partition: int) -> None:
        """From now on nobody serves `partition`."""
        if self.owner(partition) != NO_OWNER:
            self._concern(partition)
            self._partitions["owner"][partition] = NO_OWNER

    def owner(self, partition: int) -> int:
        """Return the replica that `partition` is attached to, or NOBODY."""
        return int(self._partitions["owner"][partition])

    def in_service_until_us(self, partition: int) -> int:
        """Return when the event of `partition` that is in service now is finished; `now_us` if there is none.

        Of several, should a new owner have been attached too early, the last one counts.
        """
        return kernel.in_service_until(*self._state(), partition, self.now_us)

    def committed(self) -> NDArray[np.int64]:
        """Return events committed at or before now, by partition."""
        self._carry_out()
        kernel.commit_all(*self._state(), self.now_us)
        committed: NDArray[np.int64] = self._partitions["committed"].copy()
        return committed

    def busy_us(self) -> list[int] | None:
        """Under a shared limit: what the events that each replica has begun take it, by its number.

        The wait for their turn counts, but for what was before the last command that concerns the replica.
        """
        return self._replicas["busy_us"].tolist() if self._limited else None

    def kill(self, replica: int) -> None:
        """End `replica` now: what it served and had not committed is to be served again. Its partitions are detached.

        Such an event's outcome is that of its first completion, as in the definition of latency; if it was finished
        before, only the repetition costs time. One in service was not finished.

        Raises ValueError for a replica that does not exist or was killed.
        """
        self._check_alive(replica)
        self._carry_out()
        for partition in np.flatnonzero(self._partitions["owner"] == replica).tolist():
            self.detach(partition)
        returned = event = kernel.begun(*self._state(), replica, self.now_us)
        while event != NONE:
            row = self._events.rows[event - self._events.base]
            if event >= self._collected_until and row["done_us"] <= self.now_us:
                self._repeated.setdefault(event, self._events.outcomes(event, event + 1))
            self._concern(int(row["partition"]))
            event = int(row["next"])
        self._replicas["alive"][replica] = False
        self._carry_out(returned)

    def drain(self) -> int:
        """Serve all that is left; return when the last event was finished, µs.

        Raises ValueError if events are left in partitions that are attached nowhere.
        """
        now_us = self.now_us
        self.advance(NEVER - 1)
        forgotten = np.flatnonzero(self._partitions["first"] != NONE)
        if len(forgotten):
            raise ValueError(f"nobody serves what is left in partitions {forgotten.tolist()}")
        self.committed()
        done_us = int(self._replicas["done_us"].max(initial=0))
        self.now_us = max(now_us, done_us)
        return done_us

    def _arrive(self, until_us: int) -> None:
        if self._arrived < self._events.loaded:
            left = kernel.arrive(*self._state(), self._service, self._arrived, until_us)
            self._arrived = self._events.loaded if left == NONE else left
        if self._limited:
            events, known_us = self._events, min(until_us, self._events.next_us)
            kernel.begin(events.rows, events.base, self._replicas, self._service, self.now_us, known_us)

    def _collect(self) -> None:
        first = end = self._collected_until
        while True:
            end = kernel.first_unfinished(self._events.rows, self._events.base, end, self._events.loaded, self.now_us)
            if end not in self._repeated:
                break
            end += 1
        served = self._events.outcomes(first, end)
        for event in [event for event in self._repeated if event < end]:
            outcome = self._repeated.pop(event)
            served.started_us[event - first] = outcome.started_us[0]
            served.done_us[event - first] = outcome.done_us[0]
            served.replica[event - first] = outcome.replica[0]
        self._put_aside(served)

    def _check_alive(self, replica: int) -> None:
        if not (0 <= replica < len(self._replicas) and self._replicas["alive"][replica]):
            raise ValueError(f"replica {replica} does not live")

    def _concern(self, partition: int) -> None:
        self._partitions["concerned"][partition] = True
        if self.owner(partition) != NO_OWNER:
            self._replicas["concerned"][self.owner(partition)] = True
        self._commanded = True

    def _carry_out(self, returned: int = NONE) -> None:
        if self._commanded:
            kernel.reassign(*self._state(), self._service, self.now_us, returned)
            self._commanded = False
