"""A guard with an operator's limits of single changes: replicas in one step, and moves within a minute."""

from collections import deque
from dataclasses import dataclass, field
from operator import ne
from typing import Final

from autoscaler.model import Decision, GroupObservation, Plan
from autoscaler.policies.guards.limits import limited, resize_plan, veto
from autoscaler.policies.planning import change, describe_unowned
from autoscaler.policies.settings import REPLICA_PREFIX
from autoscaler.ports import PolicyWrapper

MINUTE_S: Final = 60.0


@dataclass(eq=False, kw_only=True)
class Steps(PolicyWrapper):
    """Limits how many replicas one decision adds or removes, and how many partitions move within a minute.

    Each limit: 0 means none. A change with more moves than a minute permits waits for a minute without moves.
    Partitions without an owner get one at once.
    """

    max_step_up: int = 0
    max_step_down: int = 0
    moves_per_minute: int = 0
    replica_prefix: str = REPLICA_PREFIX
    _moves: deque[tuple[float, int]] = field(default_factory=deque)
    _owners: dict[int, str] = field(default_factory=dict)

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, a smaller step, or no change while too many partitions have moved."""
        wanted = self.policy.decide(observation)
        now, count = observation.requested_replicas, wanted.plan.count
        step, rail = (self.max_step_up, "max_step_up") if count > now else (self.max_step_down, "max_step_down")
        if 0 < step < abs(count - now):
            plan = resize_plan(observation, wanted.plan, now + (step if count > now else -step), self.replica_prefix)
            wanted = limited(change(observation, plan, f"{wanted.reason}; {rail} is {step}"), wanted, rail)
        moves, recent = self._moves_of(wanted.plan, observation), self._recent(observation)
        if moves and recent and recent + moves > self.moves_per_minute > 0 and not describe_unowned(observation):
            why = f"{recent} moves in the last minute and {moves} more exceed {self.moves_per_minute}"
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
