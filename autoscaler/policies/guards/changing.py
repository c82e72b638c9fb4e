"""One change at a time: replicas that start, partitions that are handed over."""

import math
from collections.abc import Mapping

from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.policies.guards.guard import Guard, veto
from autoscaler.policies.planning import number, unowned
from autoscaler.ports import Policy


class HoldWhileChanging(Guard):
    """No DOWN and no REASSIGN while a requested replica is not ready; UP passes, for load does not wait.

    limit_s: a replica that is not ready for that long no longer holds the group back.
    """

    def __init__(self, policy: Policy, *, limit_s: float = 30.0) -> None:
        super().__init__(policy)
        self.limit_s = limit_s
        self._awaited_since_s: dict[str, float] = {}

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, or a hold that names the replicas that are awaited."""
        wanted = self.policy.decide(observation)
        self._awaited_since_s = {
            one.name: self._awaited_since_s.get(one.name, observation.at_s)
            for one in observation.replicas
            if not one.ready
        }
        awaited = [name for name, at_s in self._awaited_since_s.items() if observation.at_s - at_s < self.limit_s]
        if not awaited or wanted.action in (Action.UP, Action.HOLD):
            return wanted
        return veto(observation, wanted, f"{', '.join(awaited)} not ready yet")


class HoldDuringHandover(Guard):
    """Nothing for the rebalance time t_r after partitions began to change owners, unless some have no owner at all.

    Judged by what is seen: owners that differ from those of the observation before have changed since then, and a
    new owner that had to start takes over when it is ready. Waiting for that is the other guard's.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self._began_s = -math.inf
        self._seen_s = -math.inf
        self._owners: Mapping[int, str] | None = None
        self._starting: frozenset[str] = frozenset()

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, or a hold while a handover is likely to run."""
        wanted = self.policy.decide(observation)
        self._look(observation)
        since_s = observation.at_s - self._began_s
        if wanted.action is Action.HOLD or since_s >= observation.rebalance_time_s or unowned(observation):
            return wanted
        so_far = f"{number(since_s)} of {number(observation.rebalance_time_s)} s"
        return veto(observation, wanted, f"partitions are being handed over, {so_far}")

    def _look(self, observation: GroupObservation) -> None:
        starting = frozenset(one.name for one in observation.replicas if not one.ready)
        taking_over = (self._starting - starting).intersection(observation.assignment.values())
        if taking_over or (self._owners is not None and self._owners != observation.assignment):
            self._began_s = self._seen_s
        self._seen_s, self._owners, self._starting = observation.at_s, observation.assignment, starting
