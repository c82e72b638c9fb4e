"""Our own policy: plans by the events that would be late, and what a replica costs."""

from autoscaler.policies.tail_aware.policy import TailAware
from autoscaler.policies.tail_aware.settings import TailAwareSettings

__all__ = ["TailAware", "TailAwareSettings"]
