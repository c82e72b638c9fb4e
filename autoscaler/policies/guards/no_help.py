"""Did the last scale-up help? A partition that is too hot or held up elsewhere is served no faster by more replicas."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.policies.guards.guard import Guard
from autoscaler.policies.planning import number
from autoscaler.ports import Policy

HELPS: Final = 0.1
"""A scale-up helped if this share of the capacity that it added is used."""


@dataclass(frozen=True, slots=True)
class _Count:
    """Events served by the whole group since the first observation, as of some moment."""

    at_s: float
    served: float

    def rate_since(self, before: "_Count") -> float:
        """Events/s served since `before`."""
        return (self.served - before.served) / (self.at_s - before.at_s) if self.at_s > before.at_s else 0.0


@dataclass(frozen=True, slots=True)
class _Trial:
    """A scale-up that is to show its effect."""

    at_s: float
    before: int
    count: int
    served_per_s: float
    """Events/s before it."""
    lag: int
    ready: _Count | None = None
    """When its replicas were ready."""


class NoticeNoHelp(Guard):
    """Says so when a scale-up did not help; vetoes nothing.

    What the group serves in `after_s` from when its replicas are ready is compared with what it served before
    (served = λ·Δt − Δlag). It did not help if there is a backlog, the lag is no smaller, and less than a tenth of the
    added capacity is used. Said until the backlog is gone or the group is scaled again.
    """

    def __init__(self, policy: Policy, *, latency_target_s: float, after_s: float = 10.0) -> None:
        super().__init__(policy)
        self.latency_target_s = latency_target_s
        self.after_s = after_s
        self._counts: deque[_Count] = deque()
        self._lag = 0
        self._trial: _Trial | None = None
        self._verdict = ""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, with a verdict on the last scale-up in its reason where that was of no use."""
        count = self._count(observation)
        wanted = self.policy.decide(observation)
        self._compare(observation, count)
        if self._verdict and not backlog(observation, self.latency_target_s):
            self._verdict = ""
        decision = replace(wanted, reason=f"{wanted.reason}; {self._verdict}") if self._verdict else wanted
        if wanted.action in (Action.UP, Action.DOWN):
            self._verdict, self._trial = "", None
        if wanted.action is Action.UP:
            rate, now = count.rate_since(self._counts[0]), observation.requested_replicas
            self._trial = _Trial(observation.at_s, now, wanted.plan.count, rate, self._lag)
        return decision

    def _count(self, observation: GroupObservation) -> _Count:
        """Add what was served since the observation before: what arrived and is not there any more."""
        lag, served = sum(load.lag for load in observation.partitions), 0.0
        if self._counts:
            since_s = observation.at_s - self._counts[-1].at_s
            arrived = sum(load.arrival_rate for load in observation.partitions) * since_s
            served = self._counts[-1].served + max(0.0, arrived - (lag - self._lag))
        self._lag = lag
        self._counts.append(_Count(observation.at_s, served))
        while len(self._counts) > 2 and observation.at_s - self._counts[1].at_s >= self.after_s:
            self._counts.popleft()
        return self._counts[-1]

    def _compare(self, observation: GroupObservation, count: _Count) -> None:
        trial = self._trial
        if trial is None:
            return
        if trial.ready is None:
            ready = sum(one.ready for one in observation.replicas)
            self._trial = replace(trial, ready=count if ready >= trial.count else None)
            return
        if count.at_s - trial.ready.at_s < self.after_s:
            return
        self._trial = None
        served = count.rate_since(trial.ready)
        added = (trial.count - trial.before) * observation.service_rate
        if served - trial.served_per_s >= HELPS * added or self._lag < trial.lag:
            return
        most = max(observation.partitions, key=lambda load: load.lag)
        self._verdict = (
            f"the scale-up {trial.before} → {trial.count} {number(count.at_s - trial.at_s)} s ago did not help: "
            f"{number(served)} events/s served, {number(trial.served_per_s)} before; lag {trial.lag} → {self._lag}, "
            f"{100 * most.lag / max(1, self._lag):.0f} % of it in partition {most.partition}"
        )


def backlog(observation: GroupObservation, latency_target_s: float) -> str:
    """Say who holds more lag than is served within the latency target W, lag > μ·W; empty text when nobody does.

    Where no owner is known the group counts as one. Partitions without an owner are somebody else's concern.
    """
    held: dict[str, int] = {}
    for load in observation.partitions:
        owner = observation.assignment.get(load.partition, "")
        held[owner] = held.get(owner, 0) + load.lag
    rates = {one.name: one.service_rate or observation.service_rate for one in observation.replicas}
    if not observation.assignment:
        held, rates = {"the group": held.get("", 0)}, {"the group": sum(rates.values())}
    late_s = {name: held.get(name, 0) / rate for name, rate in rates.items() if rate > 0}
    worst = max(late_s, key=lambda name: late_s[name], default="")
    if not worst or late_s[worst] <= latency_target_s:
        return ""
    return f"{worst} holds {held[worst]} events, {number(late_s[worst])} s of work"
