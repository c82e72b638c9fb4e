"""A policy that moves partitions at random: a new plan each ten seconds."""

from random import Random

from autoscaler.model import Decision, GroupObservation, Plan
from autoscaler.policies.planning import change, no_change
from autoscaler.policies.settings import PolicySettings

EVERY_S = 10
MOST = 4


class RandomPlans:
    """a count of 2 to 4 replicas and owners at random, the same within each ten seconds"""

    name = "random-plans"

    def __init__(self, settings: PolicySettings) -> None:
        self.settings = settings

    def decide(self, observation: GroupObservation) -> Decision:
        random = Random(int(observation.at_s // EVERY_S))
        names = [f"{self.settings.replica_prefix}-{number}" for number in range(random.randint(2, MOST))]
        if set(names) - {replica.name for replica in observation.replicas if replica.surely_ready}:
            if observation.assignment and set(names) <= set(observation.replica_names):
                return no_change(observation, "replicas start")
            return change(observation, Plan((*names,), observation.assignment or None), "random count")
        owners = {load.partition: random.choice(names) for load in observation.partitions}
        return change(observation, Plan((*names,), owners), "random owners")
