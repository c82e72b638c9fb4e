"""One tick of a controller as the journal records it; the same in both worlds."""

from dataclasses import asdict, dataclass
from typing import Any

from autoscaler.model import Action, Decision, GroupObservation
from contracts.journal import PartitionState, PlanAlternative, TickRecord


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """Numbers that are known at any time, also when nothing can be observed."""

    requested_replicas: int
    ready_replicas: int
    planned_replicas: int
    epoch: int
    """Of the plan in force; 0 without one."""
    service_rate: float


def decision_record(observation: GroupObservation, decision: Decision, *, epoch: int, **when: Any) -> TickRecord:
    """Return the record of a decision with what it was made from.

    epoch: of the plan in force afterwards. when: at_us, tick and policy of the record.
    """
    owners = observation.assignment
    return TickRecord(
        **when,
        action=decision.action.value,
        reason=decision.reason,
        service_rate=observation.service_rate,
        partitions=tuple(
            PartitionState(
                partition=one.partition, arrival_rate=one.arrival_rate, lag=one.lag, owner=owners.get(one.partition)
            )
            for one in observation.partitions
        ),
        ready_replicas=sum(replica.ready for replica in observation.replicas),
        requested_replicas=observation.requested_replicas,
        planned_replicas=decision.plan.count,
        epoch=epoch,
        alternatives=tuple(
            PlanAlternative(replicas=one.replicas, moved=one.moved, in_sla=one.in_sla, cost_s=one.cost_s)
            for one in decision.alternatives
        ),
    )


def not_ready_record(missing: str, status: GroupStatus, **when: Any) -> TickRecord:
    """Return the record of a tick at which nothing was decided. missing: the number that was unknown, in words."""
    why: dict[str, Any] = {"action": Action.NO_CHANGE.value, "reason": "not everything is known", "missing": missing}
    return TickRecord(**when, **why, **asdict(status), partitions=())
