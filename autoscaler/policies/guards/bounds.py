"""Minimum, maximum, and the hard cap at the number of partitions."""

from collections.abc import Mapping

from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.policies.guards.guard import Guard, resized
from autoscaler.policies.planning import change, hold, unowned
from autoscaler.ports import Policy

WORTH_MOVING = 0.1
"""At the cap, partitions move only if the busiest replica loses this share of its arrival rate: an overloaded group
must not pay for a handover each second that gains next to nothing."""


class Bounds(Guard):
    """Keeps the count within [minimum, maximum] and never above the partitions: a replica without one serves nobody."""

    def __init__(self, policy: Policy, *, minimum: int = 1, maximum: int = 0, replica_prefix: str = "payment") -> None:
        """maximum 0: as many as there are partitions."""
        super().__init__(policy)
        self.minimum = minimum
        self.maximum = maximum
        self.replica_prefix = replica_prefix

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, or the nearest one within the bounds."""
        wanted = self.policy.decide(observation)
        count, limit = self._bounded(wanted.plan.count, len(observation.partitions))
        if count == wanted.plan.count:
            return wanted
        why = f"{wanted.reason}; {limit}"
        plan = resized(observation, wanted.plan, count, self.replica_prefix)
        if plan.assignment is not None and count == observation.requested_replicas and not unowned(observation):
            if wanted.action is Action.DOWN:
                return hold(observation, f"{why}: hold {count}")
            if not _relieves(observation, plan):
                return hold(observation, f"{why}: hold {count}, no placement relieves the busiest replica enough")
        return change(observation, plan, why)

    def _bounded(self, count: int, partitions: int) -> tuple[int, str]:
        if 0 < self.maximum < min(count, partitions):
            return self.maximum, f"maximum is {self.maximum}"
        if count > partitions:
            return partitions, f"capped at {partitions}, for replicas cannot share a partition"
        if count < min(self.minimum, partitions):
            return min(self.minimum, partitions), f"minimum is {self.minimum}"
        return count, ""


def _relieves(observation: GroupObservation, plan: Plan) -> bool:
    """Tell whether `plan` takes a share worth moving from the busiest replica."""
    assert plan.assignment is not None, "only plans with an assignment are compared"
    now, then = _busiest(observation, observation.assignment), _busiest(observation, plan.assignment)
    return then < now * (1 - WORTH_MOVING)


def _busiest(observation: GroupObservation, assignment: Mapping[int, str]) -> float:
    """Return the largest Σλ/μ of any replica. Every partition has an owner here."""
    rates = {one.name: one.service_rate or observation.service_rate for one in observation.replicas}
    total: dict[str, float] = {}
    for load in observation.partitions:
        owner = assignment.get(load.partition, "")
        rate = rates.get(owner, observation.service_rate)
        total[owner] = total.get(owner, 0.0) + load.arrival_rate / rate
    return max(total.values())
