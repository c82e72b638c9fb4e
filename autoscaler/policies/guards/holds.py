"""A guard that carries out an operator's hold: a pause, or a fixed number of replicas."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.policies.guards.limits import limited, resize_plan, veto
from autoscaler.policies.planning import change, describe_unowned
from autoscaler.policies.settings import REPLICA_PREFIX, Limits
from autoscaler.ports import PolicyWrapper


class Restriction(NamedTuple):
    """The changes that an operator permits at present."""

    may_grow: bool
    may_shrink: bool
    may_move: bool
    """Whether partitions may change their owner."""
    pinned: int
    """Number of replicas that the group must have; 0: not pinned."""
    why: str


@dataclass(eq=False, kw_only=True)
class Held(PolicyWrapper):
    """Keeps the number of replicas as the operator wants it. The inner policy goes on deciding, for the reasons.

    A replica that dies is replaced, and its partitions get owners, also during a pause.
    """

    hold: Callable[[], Restriction | None]
    """Returns the restriction that applies now; None: there is none."""
    limits: Limits = field(default_factory=Limits)
    replica_prefix: str = REPLICA_PREFIX
    rail: str = "hold"
    """Name of this limit in decisions."""
    _count: int = 0
    """Number of replicas in the last plan; 0: none was decided yet."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, or the nearest one that the hold permits."""
        wanted = self.policy.decide(observation)
        if (hold := self.hold()) is not None:
            wanted = self._restrict(observation, wanted, hold)
        self._count = wanted.plan.count
        return wanted

    def _restrict(self, observation: GroupObservation, wanted: Decision, hold: Restriction) -> Decision:
        now, why = observation.requested_replicas, hold.why
        count = self._permitted(wanted.plan.count, self._count or now, hold, len(observation.partitions))
        is_whole = count == now and not describe_unowned(observation)
        if is_whole and wanted.action is not Action.NO_CHANGE:
            if count != wanted.plan.count or not hold.may_move:
                return veto(observation, wanted, why, self.rail)
        elif count != wanted.plan.count:
            plan = resize_plan(observation, wanted.plan, count, self.replica_prefix)
            return limited(change(observation, plan, f"{wanted.reason}; {why}"), wanted, self.rail)
        return wanted

    def _permitted(self, wanted: int, before: int, hold: Restriction, partitions: int) -> int:
        """Return the permitted number of replicas that is nearest to `wanted`. before: number in the last plan."""
        if hold.pinned:
            most = min(self.limits.max_replicas or partitions, partitions)
            return min(most, max(self.limits.min_replicas, hold.pinned))
        return min(max(wanted, wanted if hold.may_shrink else before), max(wanted, before) if hold.may_grow else before)
