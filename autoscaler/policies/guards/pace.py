"""Not too often, not too much at once, and not on a whim: cool-down, rate limit, stabilisation windows."""

import math
from collections import deque

from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.policies.guards.guard import Guard, resized, veto
from autoscaler.policies.planning import change, number
from autoscaler.ports import Policy


class CoolDown(Guard):
    """After any scaling, no UP for `up_s` and no DOWN for `down_s`. Reassigning is not scaling."""

    def __init__(self, policy: Policy, *, up_s: float = 0.0, down_s: float = 0.0) -> None:
        super().__init__(policy)
        self.up_s = up_s
        self.down_s = down_s
        self._scaled_at_s = -math.inf

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, or a hold while it is too early for its action."""
        wanted = self.policy.decide(observation)
        if wanted.action not in (Action.UP, Action.DOWN):
            return wanted
        wait_s = self.up_s if wanted.action is Action.UP else self.down_s
        since_s = observation.at_s - self._scaled_at_s
        if since_s < wait_s:
            return veto(observation, wanted, f"cooling down, {number(since_s)} of {number(wait_s)} s")
        self._scaled_at_s = observation.at_s
        return wanted


class RateLimit(Guard):
    """Adds and removes at most `replicas` together within any `window_s`, both directions from one budget.

    What is wanted beyond that comes in parts, so that a surge gets at once what may be given at once.
    """

    def __init__(self, policy: Policy, *, replicas: int, window_s: float, replica_prefix: str = "payment") -> None:
        super().__init__(policy)
        self.replicas = replicas
        self.window_s = window_s
        self.replica_prefix = replica_prefix
        self._spent: deque[tuple[float, int]] = deque()
        self._last: tuple[float, int] | None = None

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, the part of it that is left in the budget, or a hold when nothing is left."""
        wanted = self.policy.decide(observation)
        now = observation.requested_replicas
        step = wanted.plan.count - now
        left = max(0, self.replicas - self._spent_until(observation.at_s, now))
        if wanted.action not in (Action.UP, Action.DOWN):
            return wanted
        limit = f"at most {self.replicas} replicas come or go within {number(self.window_s)} s"
        if not left:
            return veto(observation, wanted, limit)
        if abs(step) <= left:
            return wanted
        count = now + (left if step > 0 else -left)
        plan = resized(observation, wanted.plan, count, self.replica_prefix)
        return change(observation, plan, f"{wanted.reason}; {limit}")

    def _spent_until(self, at_s: float, now: int) -> int:
        """Return how many came and went within the window, by the counts that were seen: a decision may be vetoed."""
        if self._last is not None and now != self._last[1]:
            self._spent.append((self._last[0], abs(now - self._last[1])))
        self._last = at_s, now
        while self._spent and at_s - self._spent[0][0] >= self.window_s:
            self._spent.popleft()
        return sum(spent for _, spent in self._spent)


class Stabilised(Guard):
    """Scales down only to the most, and up only to the fewest, that was wanted at any time within a window.

    As Kubernetes' HPA does with counts (up_s = 0, down_s = 300 by default there; the count at the first decision is
    taken to have been wanted before). A plan that says who owns what is not changed but waits: DOWN until nothing
    larger has been wanted for `down_s`; UP until more than there are have been wanted for all of `up_s`, and then it
    goes to the final count at once, for a load that keeps on rising would otherwise never be let through.
    """

    def __init__(
        self, policy: Policy, *, up_s: float = 0.0, down_s: float = 0.0, replica_prefix: str = "payment"
    ) -> None:
        super().__init__(policy)
        self.up_s = up_s
        self.down_s = down_s
        self.replica_prefix = replica_prefix
        self._wishes: deque[tuple[float, int]] = deque()

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision, a smaller change, or a hold while the window holds other wishes."""
        wanted = self.policy.decide(observation)
        now, count = observation.requested_replicas, wanted.plan.count
        self._remember(observation.at_s, count, now)
        if wanted.action is Action.UP:
            allowed, window_s, most = min(self._within(observation.at_s, self.up_s)), self.up_s, "fewest"
            waits = allowed <= now
        elif wanted.action is Action.DOWN:
            allowed, window_s, most = max(self._within(observation.at_s, self.down_s)), self.down_s, "most"
            waits = allowed >= now or (allowed > count and wanted.plan.assignment is not None)
        else:
            return wanted
        why = f"the {most} wanted within {number(window_s)} s is {allowed}"
        if waits:
            return veto(observation, wanted, why)
        if allowed == count or wanted.plan.assignment is not None:
            return wanted
        return change(
            observation, resized(observation, wanted.plan, allowed, self.replica_prefix), f"{wanted.reason}; {why}"
        )

    def _remember(self, at_s: float, count: int, now: int) -> None:
        if not self._wishes:
            self._wishes.append((at_s, now))
        self._wishes.append((at_s, count))
        while at_s - self._wishes[0][0] >= max(self.up_s, self.down_s) and len(self._wishes) > 1:
            self._wishes.popleft()

    def _within(self, at_s: float, window_s: float) -> list[int]:
        """Return what was wanted less than `window_s` ago; the newest wish always counts."""
        recent = [count for wished_at_s, count in self._wishes if at_s - wished_at_s < window_s]
        return recent or [self._wishes[-1][1]]
