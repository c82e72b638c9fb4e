"""What the group must survive: partitions that are stuck, a policy that fails."""

from dataclasses import replace
from operator import eq

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.policies.guards.stand_in import CountByLoad
from autoscaler.policies.planning import change, hold, number
from autoscaler.ports import Policy, PolicyAround


class SetStuckAside(PolicyAround):
    """Alerts for stuck partitions in the reason, and hides their lag from the policy inside, so that nothing scales.

    Stuck: for `after_s` some lag, no progress (λ·Δt − Δlag of less than one event), one owner, and that owner ready.
    Its λ stays visible: it will have to be served when the fault is mended. Who is silent may not be serving, and of a
    partition that cannot be read nobody knows: neither is stuck.
    """

    def __init__(self, policy: Policy, *, after_s: float = 30.0) -> None:
        super().__init__(policy)
        self.after_s = after_s
        self._seen_s = 0.0
        self._lag: NDArray[np.float64] = np.empty(0)
        self._owners: list[str] = []
        self._since_s: NDArray[np.float64] = np.empty(0)
        """Since when each partition, in the order of the observation, may be stuck."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return what the policy decides without the lag of stuck partitions, and name these."""
        stuck = self._stuck(observation)
        if not len(stuck):
            return self.policy.decide(observation)
        loads = list(observation.partitions)
        for index in stuck:
            loads[index] = replace(loads[index], lag=0)
        wanted = self.policy.decide(replace(observation, partitions=tuple(loads)))
        return replace(wanted, reason=f"{wanted.reason}; alert: {self._alert(observation, stuck)}")

    def _stuck(self, observation: GroupObservation) -> NDArray[np.intp]:
        """Return the places of stuck partitions in the observation."""
        loads, at_s = observation.partitions, observation.at_s
        lag = np.fromiter((load.lag for load in loads), np.float64, len(loads))
        arrived = np.fromiter((load.arrival_rate for load in loads), np.float64, len(loads)) * (at_s - self._seen_s)
        ready = {one.name for one in observation.replicas if one.surely_ready}
        owner_of = dict(observation.assignment)
        owners = [owner_of.get(load.partition, "") for load in loads]
        alive = np.fromiter(map(ready.__contains__, owners), np.bool_, len(loads))
        known = min(len(loads), len(self._owners))  # partitions that are new begin now
        idle = np.zeros(len(loads), np.bool_)
        idle[:known] = arrived[:known] - (lag[:known] - self._lag[:known]) < 0.5
        idle[:known] &= np.fromiter(map(eq, owners[:known], self._owners[:known]), np.bool_, known)
        read = np.fromiter((not load.age_s for load in loads), np.bool_, len(loads))
        waits = idle & alive & read & (lag > 0)
        since_s = np.full(len(loads), at_s)
        since_s[:known] = np.where(waits[:known], self._since_s[:known], at_s)
        self._seen_s, self._lag, self._owners, self._since_s = at_s, lag, owners, since_s
        return np.flatnonzero(waits & (at_s - since_s >= self.after_s))

    def _alert(self, observation: GroupObservation, stuck: NDArray[np.intp]) -> str:
        first = observation.partitions[stuck[0]]
        more = f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
        since_s = observation.at_s - self._since_s[stuck[0]]
        return (
            f"partition {first.partition}{more} stuck for {number(since_s)} s with {first.lag} events of lag, while "
            f"its owner {self._owners[stuck[0]]} is ready; more replicas would not help"
        )


class Fallback(PolicyAround):
    """Has a count by rate and lag stand in for a policy that raises or whose plan cannot be carried out.

    The policy is asked again at every tick; each decision that is not its own says what was wrong (`fault`).
    """

    def __init__(self, policy: Policy, stand_in: CountByLoad) -> None:
        super().__init__(policy)
        self._stand_in = stand_in

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision if it can be carried out, else what stands in for it."""
        try:
            wanted = self.policy.decide(observation)
        except Exception as failed:  # whatever it is: the group must go on
            return self._stand_in_for(observation, f"{self.name} failed: {type(failed).__name__}: {failed}")
        holds = wanted.action is Action.HOLD  # it changes nothing, so it can always be carried out
        if not holds and (wrong := invalid(observation, wanted.plan)):
            return self._stand_in_for(observation, f"{self.name} made a plan that cannot be carried out: {wrong}")
        self._stand_in.rest()
        return wanted

    def _stand_in_for(self, observation: GroupObservation, fault: str) -> Decision:
        if not observation.partitions:
            return replace(hold(observation, fault), fault=fault)
        plan, why = self._stand_in.plan(observation)
        why, now = f"{fault}; {why}", observation.requested_replicas
        if plan.count == now and (plan.assignment is None or plan.assignment == observation.assignment):
            decision = hold(observation, f"{why}: hold {now}", counts_only=plan.assignment is None)
        else:
            decision = change(observation, plan, why)
        return replace(decision, fault=fault)


def invalid(observation: GroupObservation, plan: Plan) -> str:
    """Say why a plan cannot be carried out; empty text when it can."""
    partitions = len(observation.partitions)
    if not plan.replicas:
        return "it has no replica"
    if len(set(plan.replicas)) < plan.count:
        return "it names a replica twice"
    if plan.count > partitions:
        return f"it has {plan.count} replicas for {partitions} partitions"
    if plan.assignment is None:
        return ""
    known, placed = {load.partition for load in observation.partitions}, set(plan.assignment)
    for wrong, why in (
        (placed - known, "it names a partition that does not exist, {}"),
        (known - placed, "it leaves out partition {}"),
        (set(plan.assignment.values()) - set(plan.replicas), "it gives partitions to {}, which it does not name"),
    ):
        if wrong:
            return why.format(min(wrong))
    return ""
