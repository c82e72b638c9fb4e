"""Values of the decision core as the journal records them; the same in both worlds."""

from autoscaler.model import Decision, GroupObservation
from contracts.journal import AlternativeWeighed, PartitionSeen


def partitions_seen(observation: GroupObservation) -> tuple[PartitionSeen, ...]:
    """Return a record of each partition."""
    return tuple(
        PartitionSeen(
            partition=load.partition,
            arrival_rate=load.arrival_rate,
            lag=load.lag,
            owner=observation.assignment.get(load.partition),
        )
        for load in observation.partitions
    )


def alternatives_weighed(decision: Decision) -> tuple[AlternativeWeighed, ...]:
    """Return a record of each plan that the policy weighed."""
    return tuple(
        AlternativeWeighed(replicas=one.replicas, moved=one.moved, in_sla=one.in_sla, cost_s=one.cost_s)
        for one in decision.alternatives
    )
