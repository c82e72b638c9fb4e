"""Guards for an operator: a pause or a fixed number of replicas, and limits of single changes."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import ne
from typing import Final, NamedTuple

from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.policies.guards.limits import limited, resize_plan, veto
from autoscaler.policies.planning import change, describe_unowned
from autoscaler.policies.settings import REPLICA_PREFIX, Limits
from autoscaler.ports import PolicyWrapper

MINUTE_S: Final = 60.0


class Restriction(NamedTuple):
    """The changes that an operator permits at present."""

    may_grow: bool
    may_shrink: bool
    may_move: bool
    """Whether partitions may change their owner."""
    pinned: int
    """Number of replicas that the group must have; 0: not pinned."""
    why: str
    most: int = 0
    """Largest permitted number of replicas; 0: any."""


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
        before = max(self._count, now)  # a replica that died is replaced; an outer guard may have added some
        count = self._permitted(wanted.plan.count, before, hold, len(observation.partitions))
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
        wanted = min(wanted, hold.most or wanted)
        if hold.pinned:
            most = min(self.limits.max_replicas or partitions, partitions)
            return min(most, max(self.limits.min_replicas, hold.pinned))
        return min(max(wanted, wanted if hold.may_shrink else before), max(wanted, before) if hold.may_grow else before)


@dataclass(eq=False, kw_only=True)
class Steps(PolicyWrapper):
    """Limits how many replicas one decision adds or removes, and how many partitions move within a minute.

    A change with more moves than a minute permits waits for a minute without moves.
    Partitions without an owner get one at once.
    """

    limits: Limits
    replica_prefix: str = REPLICA_PREFIX
    _moves: deque[tuple[float, int]] = field(default_factory=deque)
    _owners: dict[int, str] = field(default_factory=dict)

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, a smaller step, or no change while too many partitions have moved."""
        wanted = self.policy.decide(observation)
        now, count = observation.requested_replicas, wanted.plan.count
        rail = "max_step_up" if count > now else "max_step_down"
        step, most = getattr(self.limits, rail), self.limits.moves_per_minute
        if 0 < step < abs(count - now):
            plan = resize_plan(observation, wanted.plan, now + (step if count > now else -step), self.replica_prefix)
            wanted = limited(change(observation, plan, f"{wanted.reason}; {rail} is {step}"), wanted, rail)
        moves, recent = self._moves_of(wanted.plan, observation), self._recent(observation)
        if moves and recent and recent + moves > most > 0 and not describe_unowned(observation):
            why = f"{recent} moves in the last minute and {moves} more exceed {most}"
            return veto(observation, wanted, why, "moves_per_minute")
        return wanted

    def _recent(self, observation: GroupObservation) -> int:
        """Return how many partitions got another owner within a minute, as observed: a decision may be vetoed."""
        moved = self._moves_of(Plan(observation.replica_names, self._owners), observation) if self._owners else 0
        self._owners = dict(observation.assignment)
        self._moves.append((observation.at_s, moved))
        while self._moves[0][0] <= observation.at_s - MINUTE_S:
            self._moves.popleft()
        return sum(count for _, count in self._moves)

    @staticmethod
    def _moves_of(plan: Plan, observation: GroupObservation) -> int:
        owners = plan.assignment or observation.assignment
        return sum(map(ne, map(owners.get, observation.assignment), observation.assignment.values()))
