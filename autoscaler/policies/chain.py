"""Stages one behind the other, scaled as one: what leaves a stage is what arrives at the next.

Each stage has a controller and a policy of its own; a `Link` carries what was seen and decided at a stage down to the
next one. There the policy is told what upstream is about to send, how much of W it has used up, and how many of the
late events that the promise allows. Nothing is told upwards: a stage does not depend on those behind it.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import ceil
from typing import Final

import numpy as np

from autoscaler.model import Decision, GroupObservation, RecentArrivals
from autoscaler.policies.guards import add_guards
from autoscaler.policies.registry import PolicyConfig, make_policy
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory
from autoscaler.policies.upstream import Report, Upstream
from autoscaler.ports import Policy, PolicyWrapper
from contracts.settings import Target

BRANCHING_DECAY_PER_TICK: Final = 0.98
"""Of the counts by which branching is measured, from tick to tick: the last fifty or so count."""
PRIOR: Final = 20.0
"""Events of a branching of 1 that are taken as seen before any were."""
FURTHEST: Final = 60
"""Decision intervals that are looked ahead to at most."""
HANDOVERS: Final = 8
"""Times t_r that is looked ahead: moves are begun early where they take long."""


Link = deque[Report]
"""From a stage to the next one: reports in order of time, each taken once."""


class ChainedPolicy:
    """A policy that is told what the stage before it is about to send. It decides at ticks alone.

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
        reports = []
        while self._link and self._link[0].observation.at_s <= observation.at_s:  # later: of a stage simulated before
            reports.append(self._link.popleft())
        used_s, inflow = self._before_s, tuple[float, ...]()
        for report in reports:
            left = self._upstream.observe(report)
            if left is not None and len(reports) == 1:  # else they belong to other intervals than what came
                self._sent, self._came = (
                    BRANCHING_DECAY_PER_TICK * self._sent + left,
                    BRANCHING_DECAY_PER_TICK * self._came + came,
                )
        if self._upstream.known_at(observation.at_s):
            used_s = min(used_s, self._upstream.used_s)
            branching = self._came / self._sent
            inflow = tuple(branching * one for one in self._upstream.ahead(self._intervals(observation)))
        self.told = replace(
            observation,
            # they know when an event came here, not what it had left
            replicas=tuple(replace(one, late=None) for one in observation.replicas),
            late_of_removed_replicas={},
            overhead_s=observation.overhead_s + used_s,
            inflow=inflow,
            late_upstream=sum(report.late for report in reports),
        )
        return self._policy.decide(self.told)

    def _intervals(self, observation: GroupObservation) -> int:
        interval_s = self._own.interval_s
        startup_s = max(observation.startup_s, self._upstream.startup_s)
        reach_s = max(startup_s + 2 * interval_s, self._within_s, HANDOVERS * observation.rebalance_time_s)
        return min(FURTHEST, ceil(reach_s / interval_s) + 1)


class ReportingPolicy(PolicyWrapper):
    """A stage's whole policy, whose ticks go down a link.

    policy: with its guards. inner: without them; its `late` says what it took for late. chained: what it is told by, in
    any stage but the first.
    """

    def __init__(self, policy: Policy, link: Link, inner: Policy, chained: ChainedPolicy | None) -> None:
        super().__init__(policy)
        self._link = link
        self._inner = inner
        self._chained = chained
        self._begun: list[RecentArrivals | None] = []
        """What came before decisions between ticks, since the last tick."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision."""
        decision = self.policy.decide(observation)
        if getattr(self._inner, "early", False):  # those after it hear of whole intervals
            self._begun.append(observation.recent)
            return decision
        told = self._chained.told if self._chained is not None else None
        known = observation if told is None or told.at_s != observation.at_s else told
        known = replace(known, recent=_joined([*self._begun, known.recent]))
        self._begun.clear()
        self._link.append(Report(known, decision, getattr(self._inner, "late", 0.0)))
        return decision


def _joined(parts: Sequence[RecentArrivals | None]) -> RecentArrivals | None:
    known = [one for one in parts if one is not None]
    if len(parts) == 1 or len(known) < len(parts):
        return parts[-1]
    counts = np.concatenate([one.counts for one in known])
    return RecentArrivals(known[-1].slot_s, counts, min(one.begin_s for one in known))


def shared(targets: Sequence[Target]) -> list[Target]:
    """Return for each stage what it and those before it promise together: one W, and one share of late events.

    targets: what each stage would promise by itself.
    """
    within_s = accumulate(one.latency_target_s for one in targets)
    late = accumulate(1 - one.percentile for one in targets)
    return [Target(latency_target_s=w_s, percentile=1 - share) for w_s, share in zip(within_s, late, strict=True)]


def chained_policies(asked: Sequence[PolicyConfig]) -> list[Policy]:
    """Return the policies of a chain's stages, first to last, inside their guards: told of each other, for one promise.

    What each stage is asked to promise by itself adds up. Raises ValueError naming what is wrong.
    """
    policies: list[Policy] = []
    before: Link | None = None
    before_s = 0.0
    for one, target in zip(asked, shared([one.target for one in asked]), strict=True):
        settings, limits = replace(one, target=target).settings()
        inner = make_policy(one.scaling.policy, settings, options=one.options)
        link, within_s = Link(), target.latency_target_s
        chained = None if before is None else ChainedPolicy(inner, before, within_s=within_s, before_s=before_s)
        policies.append(ReportingPolicy(add_guards(chained or inner, settings, limits), link, inner, chained))
        before, before_s = link, within_s
    return policies
