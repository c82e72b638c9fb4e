"""Journal records of a controller's ticks, equal in live and simulated runs."""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Action, Decision, GroupObservation, PartitionLoad, RecentArrivals
from contracts.journal import ExpectedArrivals, PartitionState, PlanAlternative, TickRecord

EXPECTED: Final = ExpectedArrivals.__struct_fields__
MAX_INTERVALS: Final = 900
"""Number of the newest intervals between observations from which the age of an event is computed."""
Floats = NDArray[np.float64]


class EventAges:
    """Measures the age of each partition's oldest uncommitted event: the time since the end offset passed that event.

    The arrivals of the newest interval are known by slot, those of earlier intervals by their number.
    """

    def __init__(self) -> None:
        self._intervals: deque[tuple[float, Floats]] = deque(maxlen=MAX_INTERVALS)
        """Length in s and arrivals by partition, newest first."""
        self._slots: list[tuple[float, Floats]] = []
        self._at_s: float | None = None

    def observe(self, observation: GroupObservation) -> list[float]:
        """Add an observation, and return the age in s of each partition's oldest uncommitted event at its time."""
        self.add(observation.at_s, observation.partitions, observation.recent)
        lags = np.array([load.lag for load in observation.partitions], np.float64)
        return self.of(lags).round(3).tolist()  # type: ignore[no-any-return]

    def add(self, at_s: float, loads: Sequence[PartitionLoad], recent: RecentArrivals | None) -> None:
        """Add the arrivals until an observation. If the number of partitions has changed, forget the earlier ones."""
        passed_s = at_s - (at_s if self._at_s is None else self._at_s)
        self._at_s = at_s
        if self._slots:
            self._intervals.appendleft((sum(s for s, _ in self._slots), np.sum([n for _, n in self._slots], axis=0)))
        if self._intervals and len(self._intervals[0][1]) != len(loads):
            self._intervals.clear()
        if recent is not None:
            self._slots = [(recent.slot_s, events.astype(np.float64)) for events in reversed(recent.counts)]
        else:
            self._slots = [(passed_s, np.array([load.arrival_rate for load in loads]) * passed_s)]

    def of(self, lags: Floats) -> Floats:
        """Return the ages in s at the newest observation, for any lags, but at most the time since the first one."""
        ages, left = np.zeros(len(lags)), np.array(lags, np.float64)
        for length_s, events in (*self._slots, *self._intervals):
            waiting = np.flatnonzero(left > 0.5)  # fractions of events are rounding
            if not len(waiting):
                break
            arrived = np.maximum(events[waiting], 1e-9)
            ages[waiting] += length_s * np.minimum(1, left[waiting] / arrived)
            left[waiting] -= arrived
        return ages


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """Numbers that are known at any time, even if the group cannot be observed."""

    requested_replicas: int
    ready_replicas: int
    planned_replicas: int
    epoch: int
    """Epoch of the plan in force; 0 without one."""
    service_rate: float


def decision_record(
    observation: GroupObservation, decision: Decision, oldest_s: Sequence[float], *, epoch: int, **when: Any
) -> TickRecord:
    """Return the record of a decision with its observation.

    oldest_s: age of each partition's oldest uncommitted event. epoch: epoch of the plan in force afterwards.
    when: at_us, tick, policy and comparison of the record.
    """
    owners = observation.assignment
    return TickRecord(
        **when,
        action=decision.action.value,
        reason=decision.reason,
        service_rate=observation.service_rate,
        partitions=tuple(
            PartitionState(
                partition=load.partition,
                arrival_rate=load.arrival_rate,
                lag=load.lag,
                owner=owners.get(load.partition),
                oldest_s=age_s,
            )
            for load, age_s in zip(observation.partitions, oldest_s, strict=True)
        ),
        ready_replicas=sum(replica.ready for replica in observation.replicas),
        requested_replicas=observation.requested_replicas,
        planned_replicas=decision.plan.count,
        epoch=epoch,
        rails=decision.rails,
        uncapped=decision.uncapped,
        alternatives=tuple(PlanAlternative(**plan._asdict()) for plan in decision.alternatives),
        expected=decision.expected and ExpectedArrivals(**dict(zip(EXPECTED, decision.expected, strict=True))),
    )


def not_ready_record(missing: str, status: GroupStatus, **when: Any) -> TickRecord:
    """Return the record of a tick without a decision. missing: name of the value that was unknown."""
    why: dict[str, Any] = {"action": Action.NO_CHANGE.value, "reason": "not everything is known", "missing": missing}
    return TickRecord(**when, **why, **asdict(status), partitions=())
