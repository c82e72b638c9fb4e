"""Chains of stages with one SLO: the output of a stage is the input of the next.

Each stage has its own controller and policy. A `Link` carries observations and decisions of a stage to the next one.
The policy of the next stage gets three values: the events that upstream will send, the part of W that upstream has
used, and the late events that upstream has caused. No information flows upstream.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
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

DECAY_PER_TICK: Final = 0.98
"""Decay of the event counts from which the branching factor is estimated: about the last 50 ticks count."""
PRIOR: Final = 20.0
"""Weight of the prior branching factor 1, events."""
MAX_INTERVALS: Final = 60
"""Maximum horizon, decision intervals."""
HANDOVERS: Final = 8
"""Minimum horizon in multiples of t_r, so that slow handovers start early."""


Link = deque[Report]
"""Reports from a stage to the next one, in order of time. Each is read once."""


class ChainedPolicy:
    """A policy that gets a forecast of the previous stage's output. It decides only at ticks.

    within_s: latency budget up to and including this stage. before_s: latency budget up to the previous stage. This
    stage may also use the time that upstream leaves unused.
    """

    def __init__(self, policy: Policy, link: Link, *, within_s: float, before_s: float) -> None:
        self._policy, self._link, self._within_s, self._before_s = policy, link, within_s, before_s
        self._upstream = Upstream()
        self.observed: GroupObservation | None = None
        """The latest observation with the values from upstream."""
        self._own = ArrivalHistory()
        self._sent = self._arrived = PRIOR

    @property
    def name(self) -> str:
        """Name of the wrapped policy."""
        return self._policy.name

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision for the observation with the values from upstream."""
        arrived = float(self._own.observe(observation).sum())
        reports = []
        # In simulations the previous stage has already run to its end: later reports stay in the link.
        while self._link and self._link[0].observation.at_s <= observation.at_s:
            reports.append(self._link.popleft())
        used_s, inflow = self._before_s, tuple[float, ...]()
        for report in reports:
            sent = self._upstream.observe(report)
            if sent is not None and len(reports) == 1:  # else they belong to other intervals than the arrivals
                self._sent = DECAY_PER_TICK * self._sent + sent
                self._arrived = DECAY_PER_TICK * self._arrived + arrived
        if self._upstream.known_at(observation.at_s):
            used_s = min(used_s, self._upstream.used_s)
            branching = self._arrived / self._sent
            inflow = tuple(branching * sent for sent in self._upstream.ahead(self._intervals(observation)))
        self.observed = replace(
            observation,
            # replicas know when an event arrived here, not how much of its latency budget was left
            replicas=tuple(replace(replica, late=None) for replica in observation.replicas),
            late_of_removed_replicas={},
            overhead_s=observation.overhead_s + used_s,
            inflow=inflow,
            late_upstream=sum(report.late for report in reports),
        )
        return self._policy.decide(self.observed)

    def _intervals(self, observation: GroupObservation) -> int:
        interval_s = self._own.interval_s
        startup_s = max(observation.startup_s, self._upstream.startup_s)
        reach_s = max(startup_s + 2 * interval_s, self._within_s, HANDOVERS * observation.rebalance_time_s)
        return min(MAX_INTERVALS, ceil(reach_s / interval_s) + 1)


class ReportingPolicy(PolicyWrapper):
    """The complete policy of a stage, which reports its ticks to the next stage.

    policy: with its guards. inner: without guards. inner.late: its number of late events. chained: the policy that
    receives values from upstream; None in the first stage.
    """

    def __init__(self, policy: Policy, link: Link, inner: Policy, chained: ChainedPolicy | None) -> None:
        super().__init__(policy)
        self._link, self._inner, self._chained = link, inner, chained
        self._begun: list[RecentArrivals | None] = []
        """Arrivals before each decision between ticks, since the last tick."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision."""
        decision = self.policy.decide(observation)
        if getattr(self._inner, "early", False):  # the next stage gets reports of whole intervals
            self._begun.append(observation.recent)
            return decision
        chained = self._chained.observed if self._chained is not None else None
        reported = observation if chained is None or chained.at_s != observation.at_s else chained
        reported = replace(reported, recent=_join([*self._begun, reported.recent]))
        self._begun.clear()
        self._link.append(Report(reported, decision, getattr(self._inner, "late", 0.0)))
        return decision


def _join(parts: Sequence[RecentArrivals | None]) -> RecentArrivals | None:
    known = [part for part in parts if part is not None]
    if len(parts) == 1 or len(known) < len(parts):
        return parts[-1]
    counts = np.concatenate([part.counts for part in known])
    return RecentArrivals(known[-1].slot_s, counts, min(part.begin_s for part in known))


def chained_policies(configs: Sequence[PolicyConfig]) -> list[Policy]:
    """Return the linked policies of a chain's stages, first to last, inside their guards.

    The targets of the stages add up to one SLO. The W and late share of a stage are sums up to this stage.
    Raises ValueError naming the wrong setting.
    """
    policies: list[Policy] = []
    before: Link | None = None
    before_s = late = 0.0
    for config in configs:
        within_s, late = before_s + config.target.latency_target_s, late + (1 - config.target.percentile)
        target = Target(latency_target_s=within_s, percentile=1 - late)
        settings, limits = replace(config, target=target).settings()
        inner = make_policy(config.scaling.policy, settings, options=config.options)
        link = Link()
        chained = None if before is None else ChainedPolicy(inner, before, within_s=within_s, before_s=before_s)
        policies.append(ReportingPolicy(add_guards(chained or inner, settings, limits), link, inner, chained))
        before, before_s = link, within_s
    return policies
