"""Forecast of the events that a stage will send to the next one, computed from its ticks."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from math import ceil
from typing import Final

import numpy as np

from autoscaler.estimation.forecasts import Forecasts
from autoscaler.estimation.startup_times import StartUpTimes
from autoscaler.jit import Floats
from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.tail_aware.arrivals import RECENT, ArrivalHistory

NO_OWNER: Final = ""
WAIT_TICKS: Final = 4
"""Ticks of the previous stage whose longest wait counts as used latency budget."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """One tick of a stage."""

    observation: GroupObservation
    decision: Decision
    late: float
    """Events late at this stage or before it, since the previous tick."""


class Upstream:
    """Forecasts the output of a stage: its backlog and arrivals, limited by the rate of its replicas."""

    def __init__(self) -> None:
        self._history = ArrivalHistory()
        self._forecasts = Forecasts(np.zeros(0))
        self._startups = StartUpTimes()
        self._requested_s: dict[str, float] = {}
        """Starting replica → time of its request."""
        self._serving: dict[int, str] = {}
        """Partition → replica that serves it now: the previous owner while the new one starts."""
        self._lag = 0.0
        self._waits_s: deque[float] = deque(maxlen=WAIT_TICKS)
        self._last: Report | None = None
        self.startup_s = 0.0

    @property
    def used_s(self) -> float:
        """Longest recent time from the scheduled send time to the output of this stage, seconds."""
        return max(self._waits_s)

    def known_at(self, at_s: float) -> bool:
        """Return whether the newest tick is less than 1.5 intervals before `at_s`, so no tick was missed."""
        return self._last is not None and at_s - self._last.observation.at_s < 1.5 * self._history.interval_s

    def observe(self, report: Report) -> float | None:
        """Add one tick. Return how many events left the stage in the interval before it, None after a missed tick."""
        observation = report.observation
        counts = self._history.observe(observation)
        self._startups.observe(observation)
        self.startup_s = self._startups.alone_s
        if len(self._history.intervals) == 1:
            self._forecasts = Forecasts(counts)
        self._forecasts.observe(counts, max(1, ceil(self.startup_s / self._history.interval_s)))
        lag = float(sum(load.lag for load in observation.partitions))
        left = max(0.0, float(counts.sum()) - (lag - self._lag)) if self.known_at(observation.at_s) else None
        self._lag, self._last = lag, report
        ready = {replica.name for replica in observation.replicas if replica.ready}
        starting = {*observation.replica_names, *report.decision.plan.replicas} - ready
        self._requested_s = {name: self._requested_s.get(name, observation.at_s) for name in starting}
        self._serving |= {number: owner for number, owner in observation.assignment.items() if owner in ready}
        self._waits_s.append(observation.overhead_s + max(wait_s for _, wait_s in self._slots(report, 1)))
        return left

    def ahead(self, intervals: int) -> list[float]:
        """Return the events that will leave the stage in each of the coming intervals. Requires an `observe` before.

        The present replicas limit the output until a replica that is requested now can serve. After that the stage is
        assumed to keep up with its arrivals.
        """
        assert self._last is not None, "nothing was observed yet"
        observation = self._last.observation
        slots, slot_s = len(self._history.last), self._history.slot_s
        known = min(intervals, max(1, ceil(self.startup_s / self._history.interval_s)))
        out = np.array([left for left, _ in self._slots(self._last, known)])
        sent: list[float] = out.reshape(known, slots).sum(axis=1).tolist()
        waiting = sum(load.lag for load in observation.partitions) + sum(
            self._arriving(i + 1).sum() - sent[i] for i in range(known)
        )
        most = sum(self._rates(observation, self._last.decision.plan.replicas)) * slots * slot_s
        for interval in range(known + 1, intervals + 1):
            arriving = float(self._arriving(interval).sum())
            sent.append(min(waiting + arriving, max(most, arriving)))
            waiting += arriving - sent[-1]
        return sent

    def _slots(self, report: Report, intervals: int) -> Iterator[tuple[float, float]]:
        """Yield for each slot how many events leave, and how long the last of its arrivals will wait, seconds."""
        observation, plan = report.observation, report.decision.plan
        names = list(dict.fromkeys([*observation.replica_names, *plan.replicas])) or [NO_OWNER]
        index = {name: number for number, name in enumerate(names)}
        rates = np.array(self._rates(observation, names))
        ready_s = np.array([self._ready_s(name, observation.at_s) for name in names])
        partitions = [load.partition for load in observation.partitions]
        in_turn = dict(zip(partitions, cycle(plan.replicas), strict=False))  # for a plan with a count only
        planned = [(plan.assignment or in_turn).get(p, names[0]) for p in partitions]
        to = np.array([index[name] for name in planned])
        by = np.array(
            [index.get(self._serving.get(p, ""), index[name]) for p, name in zip(partitions, planned, strict=True)]
        )
        backlog = np.array([float(load.lag) for load in observation.partitions])
        shape = self._shape()
        if observation.recent is None:  # the arrival times within the interval are unknown: assume a constant rate
            shape = np.full_like(shape, 1 / len(shape))
        slot_s = self._history.slot_s
        for interval in range(intervals):
            arriving = self._arriving(interval + 1)
            for slot, part in enumerate(shape):
                owner = np.where(ready_s[to] <= (interval * len(shape) + slot) * slot_s, to, by)
                backlog = backlog + part * arriving
                queued = np.bincount(owner, backlog, minlength=len(names))
                served = np.minimum(1.0, rates * slot_s / np.maximum(queued, 1e-9))[owner]
                yield float((backlog * served).sum()), float((queued / rates).max())
                backlog = backlog * (1 - served)

    def _shape(self) -> Floats:
        """Return the share of each partition's events in each slot of recent intervals; equal shares without events."""
        recent = self._history.intervals[-RECENT:].sum(axis=0)
        together = recent.sum(axis=1, keepdims=True)
        total = together.sum()
        together = together / total if total > 0 else np.full_like(together, 1 / len(together))
        events = recent.sum(axis=0)
        return np.asarray(np.where(events > 0, recent / np.maximum(events, 1e-9), together))

    def _rates(self, observation: GroupObservation, names: Iterable[str]) -> list[float]:
        known = {r.name: r.service_rate or observation.service_rate for r in observation.replicas}
        return [known.get(name) or observation.service_rate for name in names]

    def _arriving(self, interval: int) -> Floats:
        return self._forecasts.ahead(interval, self._last.observation.inflow if self._last else ())

    def _ready_s(self, name: str, at_s: float) -> float:
        requested_s = self._requested_s.get(name)
        return 0.0 if requested_s is None else max(0.0, requested_s + self.startup_s - at_s)
