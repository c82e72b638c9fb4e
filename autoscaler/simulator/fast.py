"""The engine to be run: `reference.ReferenceEngine` to the last event, at machine speed and in bounded memory."""

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator import kernel
from autoscaler.simulator.arrivals import Arrivals, check_next
from autoscaler.simulator.engine import NOBODY, Served
from autoscaler.simulator.rows import NEVER, NONE, PARTITION, REPLICA, Rows, service_row
from autoscaler.simulator.service import ServiceTimes
from autoscaler.simulator.window import Window


class FastEngine:
    """`engine.Engine` on the loops of `kernel`.

    It holds what was fed and has not arrived, what is unfinished, and the outcomes that were not taken.
    """

    def __init__(self, partitions: int, service: ServiceTimes, *, poll_events: int = 1) -> None:
        if partitions < 1 or poll_events < 1:
            raise ValueError(f"{partitions} partitions and polls of {poll_events} events: both must be at least 1")
        self._speed = service.speed
        self._service = service_row(service, poll_events)
        self._partitions: Rows = np.zeros(partitions, PARTITION)
        for name in ("owner", "first", "last"):
            self._partitions[name] = NONE
        self._replicas: Rows = np.empty(0, REPLICA)
        self._events = Window(service)
        self._arrived = 0
        """Number of the first event that has not arrived."""
        self._now_us = self._newest_us = 0
        self._commanded = False
        """Commands were given that have not been carried out: that is done once for all of one moment."""
        self._collected: list[Served] = []
        """Outcomes that wait to be taken; `_collected_until` is the event after them."""
        self._collected_until = self._taken = 0
        self._repeated: dict[int, Served] = {}
        """Outcome of events that were finished and must be served again."""

    @property
    def now_us(self) -> int:
        """See `Engine`."""
        return self._now_us

    def add_replica(self, speed: float = 1.0) -> int:
        """See `Engine`. Raises ValueError for a speed that is not positive."""
        if not speed > 0:
            raise ValueError(f"a replica's speed must be above 0, not {speed}")
        number = len(self._replicas)
        added = np.zeros(1, REPLICA)
        added["speed"] = self._speed(number) * speed
        added["alive"] = True
        for name in ("first", "last"):
            added[name] = NONE
        self._replicas = np.concatenate([self._replicas, added])
        return number

    def feed(self, arrivals: Arrivals) -> None:
        """See `Engine`. Raises ValueError for events out of order, of the past, or of no partition."""
        check_next(arrivals, earliest_us=max(self._now_us, self._newest_us), partitions=len(self._partitions))
        if not len(arrivals):
            return
        self._newest_us = int(arrivals.intended_us[-1])
        self._events.feed(arrivals)

    def advance(self, until_us: int) -> None:
        """See `Engine`. Raises ValueError for a moment before `now_us`."""
        if until_us < self._now_us:
            raise ValueError(f"time does not go back from {self._now_us} to {until_us} µs")
        self._carry_out()
        while self._events.next_us < until_us:
            self._arrive(until_us)
            self._now_us = self._events.next_us
            self._collect()
            self._events.load(kernel.oldest_needed(*self._state(), self._arrived, self._now_us))
        self._arrive(until_us)
        self._now_us = until_us

    def attach(self, partition: int, replica: int) -> None:
        """See `Engine`. Raises ValueError for a replica that does not exist or was killed."""
        self._check_alive(replica)
        if self.owner(partition) == replica:
            return
        self.detach(partition)
        self._partitions["owner"][partition] = replica
        self._concern(partition)

    def detach(self, partition: int) -> None:
        """See `Engine`."""
        if self.owner(partition) != NOBODY:
            self._concern(partition)
            self._partitions["owner"][partition] = NOBODY

    def owner(self, partition: int) -> int:
        """See `Engine`."""
        return int(self._partitions["owner"][partition])

    def in_service_until_us(self, partition: int) -> int:
        """See `Engine`. The last one, should a new owner have been attached too early."""
        return kernel.in_service_until(*self._state(), partition, self._now_us)

    def produced(self) -> NDArray[np.int64]:
        """See `Engine`."""
        produced: NDArray[np.int64] = self._partitions["produced"].copy()
        return produced

    def committed(self) -> NDArray[np.int64]:
        """See `Engine`."""
        self._carry_out()
        kernel.commit_all(*self._state(), self._now_us)
        committed: NDArray[np.int64] = self._partitions["committed"].copy()
        return committed

    def kill(self, replica: int) -> None:
        """See `Engine`. Raises ValueError for a replica that does not exist or was killed."""
        self._check_alive(replica)
        self._carry_out()
        for partition in np.flatnonzero(self._partitions["owner"] == replica).tolist():
            self.detach(partition)
        returned = event = kernel.begun(*self._state(), replica, self._now_us)
        while event != NONE:
            row = self._events.rows[event - self._events.base]
            if event >= self._collected_until and row["done_us"] <= self._now_us:
                self._repeated.setdefault(event, self._events.outcomes(event, event + 1))
            self._concern(int(row["partition"]))
            event = int(row["next"])
        self._replicas["alive"][replica] = False
        self._carry_out(returned)

    def drain(self) -> int:
        """See `Engine`. Raises ValueError if events are left in partitions that are attached nowhere."""
        now_us = self._now_us
        self.advance(NEVER - 1)
        forgotten = np.flatnonzero(self._partitions["first"] != NONE)
        if len(forgotten):
            raise ValueError(f"nobody serves what is left in partitions {forgotten.tolist()}")
        self.committed()
        done_us = int(self._replicas["done_us"].max(initial=0))
        self._now_us = max(now_us, done_us)
        return done_us

    def take(self) -> Served:
        """See `Engine`."""
        self._collect()
        first, self._taken = self._taken, self._collected_until
        collected, self._collected = self._collected, []
        return Served.joined(collected, first)

    def _state(self) -> tuple[Rows, int, Rows, Rows]:
        """Return what most loops work on."""
        return self._events.rows, self._events.base, self._replicas, self._partitions

    def _arrive(self, until_us: int) -> None:
        if self._arrived < self._events.loaded:
            left = kernel.arrive(*self._state(), self._service, self._arrived, until_us)
            self._arrived = self._events.loaded if left == NONE else left

    def _collect(self) -> None:
        """Put the outcomes of what has been finished aside, so that its rows may be used again."""
        first = end = self._collected_until
        while True:
            end = kernel.first_unfinished(self._events.rows, self._events.base, end, self._events.loaded, self._now_us)
            if end not in self._repeated:
                break
            end += 1
        served = self._events.outcomes(first, end)
        for event in [event for event in self._repeated if event < end]:
            outcome = self._repeated.pop(event)
            served.started_us[event - first] = outcome.started_us[0]
            served.done_us[event - first] = outcome.done_us[0]
            served.replica[event - first] = outcome.replica[0]
        self._collected.append(served)
        self._collected_until = end

    def _check_alive(self, replica: int) -> None:
        if not (0 <= replica < len(self._replicas) and self._replicas["alive"][replica]):
            raise ValueError(f"replica {replica} does not live")

    def _concern(self, partition: int) -> None:
        """What has not begun of `partition` is to be handed out again."""
        self._partitions["concerned"][partition] = True
        if self.owner(partition) != NOBODY:
            self._replicas["concerned"][self.owner(partition)] = True
        self._commanded = True

    def _carry_out(self, returned: int = NONE) -> None:
        if self._commanded:
            kernel.reassign(*self._state(), self._service, self._now_us, returned)
            self._commanded = False
