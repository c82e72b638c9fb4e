"""What a replica cannot serve in time any more, and the guard that keeps replicas until it is served."""

from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.policies.guards.guard import Guard, veto
from autoscaler.policies.planning import number
from autoscaler.ports import Policy


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


class KeepWhileDraining(Guard):
    """No DOWN while a replica holds a backlog: what arrives now is served late, and fewer would take longer."""

    def __init__(self, policy: Policy, *, latency_target_s: float) -> None:
        super().__init__(policy)
        self.latency_target_s = latency_target_s

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, or a hold that names the replica with the most to do."""
        wanted = self.policy.decide(observation)
        if wanted.action is not Action.DOWN or not (late := backlog(observation, self.latency_target_s)):
            return wanted
        return veto(observation, wanted, f"no shrinking while a backlog is drained, {late}")
