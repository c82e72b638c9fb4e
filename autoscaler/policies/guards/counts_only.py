"""Where the group places its partitions itself, a plan is a count."""

from dataclasses import replace

from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.policies.guards.guard import Guard
from autoscaler.policies.planning import hold


class CountsOnly(Guard):
    """For a group that places its partitions itself: takes the count of a decision and drops its assignment."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision without owners; to reassign is not ours here, so it becomes a hold."""
        wanted = self.policy.decide(observation)
        if wanted.action is Action.REASSIGN:
            return hold(
                observation, f"{wanted.reason}; vetoed: the group places its partitions itself", counts_only=True
            )
        return replace(wanted, plan=Plan(wanted.plan.replicas, None))
