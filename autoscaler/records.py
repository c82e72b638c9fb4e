"""Journal records of a controller's ticks, equal in live and simulated runs."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from autoscaler.model import Action, Decision, GroupObservation
from contracts.journal import ExpectedArrivals, PartitionState, PlanAlternative, TickRecord

EXPECTED: Final = ExpectedArrivals.__struct_fields__


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """Numbers that are known at any time, even if the group cannot be observed."""

    requested_replicas: int
    ready_replicas: int
    planned_replicas: int
    epoch: int
    """Epoch of the plan in force; 0 without one."""
    service_rate: float


def decision_record(observation: GroupObservation, decision: Decision, *, epoch: int, **when: Any) -> TickRecord:
    """Return the record of a decision with its observation.

    epoch: epoch of the plan in force afterwards. when: at_us, tick and policy of the record.
    """
    owners = observation.assignment
    return TickRecord(
        **when,
        action=decision.action.value,
        reason=decision.reason,
        service_rate=observation.service_rate,
        partitions=tuple(
            PartitionState(
                partition=load.partition, arrival_rate=load.arrival_rate, lag=load.lag, owner=owners.get(load.partition)
            )
            for load in observation.partitions
        ),
        ready_replicas=sum(replica.ready for replica in observation.replicas),
        requested_replicas=observation.requested_replicas,
        planned_replicas=decision.plan.count,
        epoch=epoch,
        rails=decision.rails,
        uncapped=decision.uncapped,
        alternatives=tuple(PlanAlternative(**plan._asdict()) for plan in decision.alternatives),
        expected=decision.expected and ExpectedArrivals(**dict(zip(EXPECTED, decision.expected, strict=True))),
    )


def not_ready_record(missing: str, status: GroupStatus, **when: Any) -> TickRecord:
    """Return the record of a tick without a decision. missing: name of the value that was unknown."""
    why: dict[str, Any] = {"action": Action.NO_CHANGE.value, "reason": "not everything is known", "missing": missing}
    return TickRecord(**when, **why, **asdict(status), partitions=())
