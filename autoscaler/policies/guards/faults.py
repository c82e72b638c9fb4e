"""What the group must survive: partitions that are stuck, a policy that fails."""

from dataclasses import dataclass, replace
from itertools import islice
from operator import eq

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.packing.owners import fresh_names
from autoscaler.policies.planning import Wishes, change, hold, number, replicas_for
from autoscaler.policies.settings import REPLICA_PREFIX
from autoscaler.ports import Policy, PolicyAround


class SetStuckAside(PolicyAround):
    """Alerts for stuck partitions in the reason, and hides their lag from the policy inside, so that nothing scales.

    Stuck: for `after_s` some lag, no progress (λ·Δt − Δlag of less than one event), one owner, and that owner ready.
    Its λ stays visible: it will have to be served when the fault is mended. Who is silent may not be serving, and of a
    partition that cannot be read nobody knows: neither is stuck.
    """

    def __init__(self, policy: Policy, *, after_s: float = 30.0) -> None:
        super().__init__(policy)
        self.after_s = after_s
        self._seen_s = 0.0
        self._lag: NDArray[np.float64] = np.empty(0)
        self._owners: list[str] = []
        self._since_s: NDArray[np.float64] = np.empty(0)
        """Since when each partition, in the order of the observation, may be stuck."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return what the policy decides without the lag of stuck partitions, and name these."""
        stuck = self._stuck(observation)
        if not len(stuck):
            return self.policy.decide(observation)
        loads = list(observation.partitions)
        for index in stuck:
            loads[index] = replace(loads[index], lag=0)
        wanted = self.policy.decide(replace(observation, partitions=tuple(loads)))
        return replace(wanted, reason=f"{wanted.reason}; alert: {self._alert(observation, stuck)}")

    def _stuck(self, observation: GroupObservation) -> NDArray[np.intp]:
        """Return the places of stuck partitions in the observation."""
        loads, at_s = observation.partitions, observation.at_s
        lag = np.fromiter((load.lag for load in loads), np.float64, len(loads))
        arrived = np.fromiter((load.arrival_rate for load in loads), np.float64, len(loads)) * (at_s - self._seen_s)
        ready = {one.name for one in observation.replicas if one.surely_ready}
        owner_of = dict(observation.assignment)
        owners = [owner_of.get(load.partition, "") for load in loads]
        alive = np.fromiter(map(ready.__contains__, owners), np.bool_, len(loads))
        known = min(len(loads), len(self._owners))  # partitions that are new begin now
        idle = np.zeros(len(loads), np.bool_)
        idle[:known] = arrived[:known] - (lag[:known] - self._lag[:known]) < 0.5
        idle[:known] &= np.fromiter(map(eq, owners[:known], self._owners[:known]), np.bool_, known)
        read = np.fromiter((not load.age_s for load in loads), np.bool_, len(loads))
        waits = idle & alive & read & (lag > 0)
        since_s = np.full(len(loads), at_s)
        since_s[:known] = np.where(waits[:known], self._since_s[:known], at_s)
        self._seen_s, self._lag, self._owners, self._since_s = at_s, lag, owners, since_s
        return np.flatnonzero(waits & (at_s - since_s >= self.after_s))

    def _alert(self, observation: GroupObservation, stuck: NDArray[np.intp]) -> str:
        first = observation.partitions[stuck[0]]
        more = f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
        since_s = observation.at_s - self._since_s[stuck[0]]
        return (
            f"partition {first.partition}{more} stuck for {number(since_s)} s with {first.lag} events of lag, while "
            f"its owner {self._owners[stuck[0]]} is ready; more replicas would not help"
        )


@dataclass(eq=False, kw_only=True)
class CountByLoad:
    """Decides while the policy cannot, in plain Python, for a compiler may be what failed.

    Replicas = the larger of ⌈Σλ/(μ·f)⌉ and ⌈Σlag/(μ·W·f)⌉; fewer than there are only once that has sufficed a while.

    Within the limits that the policy has; what guards forbid otherwise is not asked.
    down_s: for so long fewer must have sufficed before a replica is stopped.
    """

    latency_target_s: float
    share: float
    minimum: int = 1
    maximum: int = 0
    down_s: float = 60.0
    counts_only: bool = False
    replica_prefix: str = REPLICA_PREFIX

    def __post_init__(self) -> None:
        self._needed = Wishes(self.down_s)

    def plan(self, observation: GroupObservation) -> tuple[Plan, str]:
        """Return the plan, and why. Replicas and owners stay where the count does and every partition has an owner."""
        rate = observation.service_rate * self.share
        arriving = sum(load.arrival_rate for load in observation.partitions)
        lag = sum(load.lag for load in observation.partitions)
        needed = max(replicas_for(arriving, rate), replicas_for(lag, rate * self.latency_target_s))
        _, most_needed = self._needed.note(observation, needed)
        partitions = len(observation.partitions)
        count = max(1, min(max(most_needed, self.minimum), self.maximum or partitions, partitions))
        why = f"{number(arriving)} events/s and {lag} events of lag ask for {needed} by count"
        names = tuple(one.name for one in sorted(observation.replicas, key=lambda one: not one.surely_ready))[:count]
        kept = [name for name in observation.replica_names if name in names]
        new = islice(fresh_names(self.replica_prefix, {*kept, *observation.assignment.values()}), count - len(kept))
        replicas = (*kept, *new)
        return Plan(replicas, None if self.counts_only else _placed(observation, replicas)), why

    def rest(self) -> None:
        """Forget what was needed: the policy decides again."""
        self._needed.forget()


def _placed(observation: GroupObservation, replicas: tuple[str, ...]) -> dict[int, str]:
    """Return owners: as they are where nobody came or went, else the largest λ first, each to who has least.

    A partition stays with its owner as long as that has no more than its share of λ and of partitions.
    """
    now = observation.assignment
    if set(replicas) == set(observation.replica_names) and all(
        now.get(load.partition) in replicas for load in observation.partitions
    ):
        return {load.partition: now[load.partition] for load in observation.partitions}
    fair = sum(load.arrival_rate for load in observation.partitions) / len(replicas)
    most = -(-len(observation.partitions) // len(replicas))
    rates, held = dict.fromkeys(replicas, 0.0), dict.fromkeys(replicas, 0)
    owners: dict[int, str] = {}
    for load in sorted(observation.partitions, key=lambda one: (-one.arrival_rate, one.partition)):
        owner = now.get(load.partition, "")
        if owner not in held or held[owner] >= most or rates[owner] + load.arrival_rate > fair:
            owner = min(replicas, key=lambda name: (rates[name], held[name], replicas.index(name)))
        owners[load.partition] = owner
        rates[owner] += load.arrival_rate
        held[owner] += 1
    return dict(sorted(owners.items()))


@dataclass(eq=False)
class Fallback(PolicyAround):
    """Has a count by rate and lag stand in for a policy that raises or whose plan cannot be carried out.

    The policy is asked again at every tick; each decision that is not its own says what was wrong (`fault`).
    """

    stand_in: CountByLoad

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision if it can be carried out, else what stands in for it."""
        try:
            wanted = self.policy.decide(observation)
        except Exception as failed:  # whatever it is: the group must go on
            return self._stand_in_for(observation, f"{self.name} failed: {type(failed).__name__}: {failed}")
        holds = wanted.action is Action.HOLD  # it changes nothing, so it can always be carried out
        if not holds and (wrong := invalid(observation, wanted.plan)):
            return self._stand_in_for(observation, f"{self.name} made a plan that cannot be carried out: {wrong}")
        self.stand_in.rest()
        return wanted

    def _stand_in_for(self, observation: GroupObservation, fault: str) -> Decision:
        if not observation.partitions:
            return replace(hold(observation, fault), fault=fault)
        plan, why = self.stand_in.plan(observation)
        why, now = f"{fault}; {why}", observation.requested_replicas
        if plan.count == now and (plan.assignment is None or plan.assignment == observation.assignment):
            decision = hold(observation, f"{why}: hold {now}", counts_only=plan.assignment is None)
        else:
            decision = change(observation, plan, why)
        return replace(decision, fault=fault)


def invalid(observation: GroupObservation, plan: Plan) -> str:
    """Say why a plan cannot be carried out; empty text when it can."""
    partitions = len(observation.partitions)
    if not plan.replicas:
        return "it has no replica"
    if len(set(plan.replicas)) < plan.count:
        return "it names a replica twice"
    if plan.count > partitions:
        return f"it has {plan.count} replicas for {partitions} partitions"
    if plan.assignment is None:
        return ""
    known, placed = {load.partition for load in observation.partitions}, set(plan.assignment)
    for wrong, why in (
        (placed - known, "it names a partition that does not exist, {}"),
        (known - placed, "it leaves out partition {}"),
        (set(plan.assignment.values()) - set(plan.replicas), "it gives partitions to {}, which it does not name"),
    ):
        if wrong:
            return why.format(min(wrong))
    return ""
