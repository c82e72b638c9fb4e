"""What guards share: the name of the policy inside, a veto that says why, a plan of another size."""

from dataclasses import replace

from autoscaler.model import Decision, GroupObservation, Plan
from autoscaler.packing.least_loaded import spread
from autoscaler.policies.planning import counted_plan, hold, items_of, plan_for
from autoscaler.ports import Policy


class Guard:
    """A policy around a policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    @property
    def name(self) -> str:
        """Name of the policy inside."""
        return self.policy.name


def veto(observation: GroupObservation, wanted: Decision, why: str) -> Decision:
    """Return a hold in place of `wanted`, with the reasons of both."""
    held = hold(observation, f"{wanted.reason}; vetoed: {why}", counts_only=wanted.plan.assignment is None)
    return replace(held, alternatives=wanted.alternatives)


def resized(observation: GroupObservation, plan: Plan, count: int, prefix: str) -> Plan:
    """Return a plan with `count` replicas in place of `plan`: partitions spread evenly, or a count only as before."""
    if plan.assignment is None:
        return counted_plan(observation, count, prefix)
    return plan_for(observation, spread(items_of(observation), count), prefix)
