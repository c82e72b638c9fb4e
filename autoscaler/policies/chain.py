"""Stages one behind the other, scaled as one: what leaves a stage is what arrives at the next.

Each stage has a controller and a policy of its own; a `Link` carries what was seen and decided at a stage down to the
next one. There the policy is told what upstream is about to send, how much of W it has used up, and how many of the
late events that the promise allows. Nothing is told upwards: a stage does not depend on those behind it.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, cycle
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory
from autoscaler.policies.tail_aware.forecast import Demand
from autoscaler.policies.tail_aware.memory import StartUps
from autoscaler.ports import Policy
from contracts.target import Target

Floats = NDArray[np.float64]

KEPT: Final = 0.98
"""Of the counts by which branching is measured, from tick to tick: the last fifty or so count."""
PRIOR: Final = 20.0
"""Events of a branching of 1 that are taken as seen before any were."""
FURTHEST: Final = 60
"""Decision intervals that are looked ahead to at most."""
HANDOVERS: Final = 8
"""Times t_r that is looked ahead: moves are begun early where they take long."""
NOBODY: Final = ""
"""Owner of all partitions where there is no replica."""
USED: Final = 4
"""Ticks whose longest wait at the stage before counts: what arrives now left it a moment ago."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """One tick of a stage."""

    observation: GroupObservation
    decision: Decision
    late: float
    """Events that it took for late since the tick before, those of the stages before it included."""


class Link:
    """From a stage to the next one: reports in order of time, each taken once."""

    def __init__(self) -> None:
        self._reports: deque[Report] = deque()

    def put(self, report: Report) -> None:
        """Add the newest one."""
        self._reports.append(report)

    def until(self, at_s: float) -> list[Report]:
        """Take those of ticks at or before `at_s`; later ones, of a stage that was simulated before, stay."""
        found = []
        while self._reports and self._reports[0].observation.at_s <= at_s:
            found.append(self._reports.popleft())
        return found


class Chained:
    """A policy that is told what the stage before it is about to send.

    within_s: the part of W that this stage and those before it may use. before_s: what those before have of it in any
    case; what they do not use is left over.
    """

    def __init__(self, policy: Policy, link: Link, *, within_s: float, before_s: float) -> None:
        self._policy = policy
        self._link = link
        self._within_s = within_s
        self._before_s = before_s
        self._upstream = Upstream()
        self.told: GroupObservation | None = None
        """The last observation, with what is known from upstream."""
        self._own = ArrivalHistory()
        self._sent = self._came = PRIOR

    @property
    def name(self) -> str:
        """Name of the policy inside."""
        return self._policy.name

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision on what is seen here and known from upstream."""
        came = float(self._own.observe(observation).sum())
        reports = self._link.until(observation.at_s)
        used_s, inflow = self._before_s, tuple[float, ...]()
        for report in reports:
            left = self._upstream.observe(report)
            if left is not None and len(reports) == 1:  # else they belong to other intervals than what came
                self._sent, self._came = KEPT * self._sent + left, KEPT * self._came + came
        if self._upstream.known_at(observation.at_s):
            used_s = min(used_s, self._upstream.used_s)
            branching = self._came / self._sent
            inflow = tuple(branching * one for one in self._upstream.ahead(self._intervals(observation)))
        self.told = replace(
            observation,
            # they know when an event came here, not what it had left
            replicas=tuple(replace(one, late=None) for one in observation.replicas),
            overhead_s=observation.overhead_s + used_s,
            inflow=inflow,
            late_upstream=sum(report.late for report in reports),
        )
        return self._policy.decide(self.told)

    def _intervals(self, observation: GroupObservation) -> int:
        """Return how many are looked ahead to: until what is decided now has had its effect."""
        interval_s = self._own.interval_s
        startup_s = max(observation.startup_s, self._upstream.startup_s)
        reach_s = max(startup_s + 2 * interval_s, self._within_s, HANDOVERS * observation.rebalance_time_s)
        return min(FURTHEST, ceil(reach_s / interval_s) + 1)


class Reporting:
    """A stage's whole policy, whose ticks go down a link.

    policy: with its guards. inner: without them; its `late` says what it took for late. chained: what it is told by, in
    any stage but the first.
    """

    def __init__(self, policy: Policy, link: Link, inner: Policy, chained: Chained | None) -> None:
        self._policy = policy
        self._link = link
        self._inner = inner
        self._chained = chained

    @property
    def name(self) -> str:
        """Name of the policy inside."""
        return self._policy.name

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision."""
        decision = self._policy.decide(observation)
        told = self._chained.told if self._chained is not None else None
        known = observation if told is None or told.at_s != observation.at_s else told
        self._link.put(Report(known, decision, getattr(self._inner, "late", 0.0)))
        return decision


def as_one(
    policies: Sequence[Policy], guards: Sequence[Callable[[Policy], Policy]], targets: Sequence[Target]
) -> list[Policy]:
    """Return the policies of a chain's stages, first to last, each told of the one before it, in their guards.

    targets: of each stage and those before it, as `shared` returns them; the policies were made for these.
    """
    made: list[Policy] = []
    before: Link | None = None
    before_s = 0.0
    for inner, guard, target in zip(policies, guards, targets, strict=True):
        within_s, link = target.latency_target_s, Link()
        chained = None if before is None else Chained(inner, before, within_s=within_s, before_s=before_s)
        made.append(Reporting(guard(chained or inner), link, inner, chained))
        before, before_s = link, within_s
    return made


def shared(targets: Sequence[Target]) -> list[Target]:
    """Return for each stage what it and those before it promise together: one W, and one share of late events.

    targets: what each stage would promise by itself.
    """
    within_s = accumulate(one.latency_target_s for one in targets)
    late = accumulate(1 - one.percentile for one in targets)
    return [Target(latency_target_s=w_s, percentile=1 - share) for w_s, share in zip(within_s, late, strict=True)]


class Upstream:
    """What a stage is about to send: its backlog and its arrivals, as fast as its replicas serve them."""

    def __init__(self) -> None:
        self._history = ArrivalHistory()
        self._demand = Demand()
        self._startups = StartUps()
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
        most = self._last.decision.plan.count * seen.service_rate * slots * slot_s
        for interval in range(known + 1, intervals + 1):
            arriving = float(self._arriving(interval).sum())
            sent.append(min(waiting + arriving, max(most, arriving)))
            waiting += arriving - sent[-1]
        return sent

    def _slots(self, report: Report, intervals: int) -> Iterator[tuple[float, float]]:
        """Yield for each slot how many events leave, and how long the last that arrived by then will have waited, s."""
        seen, plan = report.observation, report.decision.plan
        names = list(dict.fromkeys([*seen.replica_names, *plan.replicas])) or [NOBODY]
        index = {name: number for number, name in enumerate(names)}
        rate_of = {one.name: one.service_rate or seen.service_rate for one in seen.replicas}
        rates = np.array([rate_of.get(name, seen.service_rate) for name in names])
        ready_s = np.array([self._ready_s(name, seen.at_s) for name in names])
        partitions = [load.partition for load in seen.partitions]
        in_turn = dict(zip(partitions, cycle(plan.replicas), strict=False))  # of a plan that states a count only
        planned = [(plan.assignment or in_turn).get(one, names[0]) for one in partitions]
        to = np.array([index[name] for name in planned])
        by = np.array(
            [index.get(self._serving.get(one, ""), index[name]) for one, name in zip(partitions, planned, strict=True)]
        )
        backlog = np.array([float(load.lag) for load in seen.partitions])
        shape = np.sum([one.weight * one.own for one in self._history.shapes()], axis=0)
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

    def _arriving(self, interval: int) -> Floats:
        """Return what will arrive here, by partition: as the stage before it says, where there is one."""
        return self._demand.told(self._last.observation.inflow if self._last else (), interval)

    def _ready_s(self, name: str, at_s: float) -> float:
        """Return how long a replica still takes to start."""
        asked_s = self._asked_s.get(name)
        return 0.0 if asked_s is None else max(0.0, asked_s + self.startup_s - at_s)
