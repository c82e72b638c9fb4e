"""A policy of one's own: one replica for every so many events of lag; the group places the partitions itself."""

from dataclasses import dataclass

from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.planning import change, plan_for_count, replicas_for
from autoscaler.policies.registry import PolicyFactory
from autoscaler.policies.settings import PolicySettings
from contracts.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class LagThresholdSettings(Settings):
    """Options of the policy, for example --set policy.lag_per_replica=20."""

    lag_per_replica: int = setting(50, "events", least=1)
    """Lag that a replica may have."""


class LagThreshold:
    """Replicas = ⌈total lag / lag_per_replica⌉."""

    name = "lag-threshold"

    def __init__(self, settings: PolicySettings, options: LagThresholdSettings) -> None:
        self.prefix, self.most = settings.replica_prefix, options.lag_per_replica

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the plan for the lag there is, and why."""
        lag = sum(load.lag for load in observation.partitions)
        plan = plan_for_count(observation, replicas_for(lag, self.most), self.prefix)
        return change(observation, plan, f"lag {lag} at {self.most} for each replica")


POLICY = PolicyFactory("lag over a threshold; states a count only", LagThreshold, LagThresholdSettings)
