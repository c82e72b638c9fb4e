"""What a stage is about to send to the next one: told by its own ticks."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory
from autoscaler.policies.tail_aware.forecast import Demand
from autoscaler.policies.tail_aware.starts import StartUpTimes

Floats = NDArray[np.float64]

NO_OWNER: Final = ""
USED: Final = 4
"""Ticks whose longest wait at the stage before counts: what arrives now left it a moment ago."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """One tick of a stage."""

    observation: GroupObservation
    decision: Decision
    late: float
    """Events that it took for late since the tick before, those of the stages before it included."""


class Upstream:
    """What a stage is about to send: its backlog and its arrivals, as fast as its replicas serve them."""

    def __init__(self) -> None:
        self._history = ArrivalHistory()
        self._demand = Demand()
        self._startups = StartUpTimes()
        self._asked_s: dict[str, float] = {}
        """Replica that is starting → when it was asked for."""
        self._serving: dict[int, str] = {}
        """Partition → who serves it now: the owner before, while the present one starts."""
        self._lag = 0.0
        self._waits_s: deque[float] = deque(maxlen=USED)
        self._last: Report | None = None
        self.startup_s = 0.0

    @property
    def used_s(self) -> float:
        """The longest that events took here of late, those before it included, seconds."""
        return max(self._waits_s)

    def known_at(self, at_s: float) -> bool:
        """Tell whether the newest tick is no older than the one before `at_s`."""
        return self._last is not None and at_s - self._last.observation.at_s < 1.5 * self._history.interval_s

    def observe(self, report: Report) -> float | None:
        """Take in one tick; return how many events left in the interval before it, None after a missed tick."""
        seen = report.observation
        counts = self._history.observe(seen)
        self._startups.observe(seen)
        self.startup_s = self._startups.typical_s(seen.startup_s, self._history.interval_s)
        self._demand.observe(self._history.last, lead=max(1, ceil(self.startup_s / self._history.interval_s)))
        lag = float(sum(load.lag for load in seen.partitions))
        left = max(0.0, float(counts.sum()) - (lag - self._lag)) if self.known_at(seen.at_s) else None
        self._lag, self._last = lag, report
        ready = {one.name for one in seen.replicas if one.ready}
        starting = {*seen.replica_names, *report.decision.plan.replicas} - ready
        self._asked_s = {name: self._asked_s.get(name, seen.at_s) for name in starting}
        self._serving |= {number: owner for number, owner in seen.assignment.items() if owner in ready}
        self._waits_s.append(seen.overhead_s + max(wait_s for _, wait_s in self._slots(report, 1)))
        return left

    def ahead(self, intervals: int) -> list[float]:
        """Return how many events will leave in each of the coming intervals, after an `observe`.

        Until a replica that is asked for now could serve, those that there are limit it. Later on the stage is taken to
        keep up with what arrives.
        """
        assert self._last is not None, "something was observed"
        seen = self._last.observation
        slots, slot_s = len(self._history.last), self._history.slot_s
        known = min(intervals, max(1, ceil(self.startup_s / self._history.interval_s)))
        out = np.array([left for left, _ in self._slots(self._last, known)])
        sent: list[float] = out.reshape(known, slots).sum(axis=1).tolist()
        waiting = sum(load.lag for load in seen.partitions) + sum(
            self._arriving(i + 1).sum() - sent[i] for i in range(known)
        )
        most = sum(self._rates(seen, self._last.decision.plan.replicas)) * slots * slot_s
        for interval in range(known + 1, intervals + 1):
            arriving = float(self._arriving(interval).sum())
            sent.append(min(waiting + arriving, max(most, arriving)))
            waiting += arriving - sent[-1]
        return sent

    def _slots(self, report: Report, intervals: int) -> Iterator[tuple[float, float]]:
        """Yield for each slot how many events leave, and how long the last that arrived by then will have waited, s."""
        seen, plan = report.observation, report.decision.plan
        names = list(dict.fromkeys([*seen.replica_names, *plan.replicas])) or [NO_OWNER]
        index = {name: number for number, name in enumerate(names)}
        rates = np.array(self._rates(seen, names))
        ready_s = np.array([self._ready_s(name, seen.at_s) for name in names])
        partitions = [load.partition for load in seen.partitions]
        in_turn = dict(zip(partitions, cycle(plan.replicas), strict=False))  # of a plan that states a count only
        planned = [(plan.assignment or in_turn).get(one, names[0]) for one in partitions]
        to = np.array([index[name] for name in planned])
        by = np.array(
            [index.get(self._serving.get(one, ""), index[name]) for one, name in zip(partitions, planned, strict=True)]
        )
        backlog = np.array([float(load.lag) for load in seen.partitions])
        shape = np.sum([one.weight * one.factor * one.own for one in self._history.shapes], axis=0)
        if seen.recent is None:  # nobody knows how they lie
            shape = np.full_like(shape, 1 / len(shape))
        slot_s = self._history.slot_s
        for interval in range(intervals):
            arriving = self._arriving(interval + 1)
            for slot, part in enumerate(shape):
                owner = np.where(ready_s[to] <= (interval * len(shape) + slot) * slot_s, to, by)
                backlog = backlog + part * arriving
                held = np.bincount(owner, backlog, minlength=len(names))
                served = np.minimum(1.0, rates * slot_s / np.maximum(held, 1e-9))[owner]
                yield float((backlog * served).sum()), float((held / rates).max())
                backlog = backlog * (1 - served)

    def _rates(self, seen: GroupObservation, names: Iterable[str]) -> list[float]:
        known = {one.name: one.service_rate or seen.service_rate for one in seen.replicas}
        return [known.get(name) or seen.service_rate for name in names]

    def _arriving(self, interval: int) -> Floats:
        return self._demand.told(self._last.observation.inflow if self._last else (), interval)

    def _ready_s(self, name: str, at_s: float) -> float:
        asked_s = self._asked_s.get(name)
        return 0.0 if asked_s is None else max(0.0, asked_s + self.startup_s - at_s)
