"""A policy that fails must not take the group with it: the last good plan, then a count that is known to be enough."""

from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.policies.guards.guard import Guard, resized
from autoscaler.policies.planning import change, hold, number, unowned
from autoscaler.ports import Policy


class Fallback(Guard):
    """Stands in for a policy that raises or whose plan cannot be carried out, and says what was wrong.

    For `after_s` the last good plan stays, or comes back where it is not in force any more. After that, and where no
    good plan names every partition, the group gets `safe_replicas`, and keeps more if it has more: blind is not the
    moment to save.
    safe_replicas 0: the most that any good plan had so far. counts_only: plans name a count and no owners.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        after_s: float = 60.0,
        safe_replicas: int = 0,
        counts_only: bool = False,
        replica_prefix: str = "payment",
    ) -> None:
        super().__init__(policy)
        self.after_s = after_s
        self.safe_replicas = safe_replicas
        self.counts_only = counts_only
        self.replica_prefix = replica_prefix
        self._good: Plan | None = None
        self._most = 1
        self._fails_since_s: float | None = None

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision if it can be carried out, else what is safe."""
        try:
            wanted = self.policy.decide(observation)
        except Exception as failed:  # whatever it is: the group must go on
            return self._fall_back(observation, f"{self.name} failed: {type(failed).__name__}: {failed}")
        wrong = invalid(observation, wanted.plan)
        if wrong and wanted.action is not Action.HOLD:  # a hold changes nothing, so it can always be carried out
            return self._fall_back(observation, f"{self.name} made a plan that cannot be carried out: {wrong}")
        self._fails_since_s = None
        if not wrong:
            self._good, self._most = wanted.plan, max(self._most, wanted.plan.count)
        return wanted

    def _fall_back(self, observation: GroupObservation, why: str) -> Decision:
        if self._fails_since_s is None:
            self._fails_since_s = observation.at_s
        since_s = observation.at_s - self._fails_since_s
        good = self._good
        if good is not None and since_s < self.after_s and not invalid(observation, good):
            return _changed(observation, good, f"{why}; the last good plan stays for {number(self.after_s)} s")
        return self._safe(observation, f"{why}, for {number(since_s)} s" if since_s else why)

    def _safe(self, observation: GroupObservation, why: str) -> Decision:
        now = observation.requested_replicas
        count = min(max(self.safe_replicas or self._most, now), len(observation.partitions))
        if count == now and (self.counts_only or not unowned(observation)):
            return hold(observation, f"{why}; hold {now}", counts_only=self.counts_only)
        kind = Plan((), None if self.counts_only else {})
        plan = resized(observation, kind, count, self.replica_prefix)
        return change(observation, plan, f"{why}; {count} are safe")


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


def _changed(observation: GroupObservation, plan: Plan, why: str) -> Decision:
    """Return a hold where `plan` is in force already, else the decision for it."""
    same = plan.assignment is None or plan.assignment == observation.assignment
    if same and set(plan.replicas) == set(observation.replica_names):
        return hold(observation, why, counts_only=plan.assignment is None)
    return change(observation, plan, why)
