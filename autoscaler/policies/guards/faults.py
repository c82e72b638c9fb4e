"""What the group must survive: partitions that are stuck, a policy that fails."""

from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.packing.owners import fresh_names
from autoscaler.policies.planning import WantedCounts, change, describe_unowned, no_change, number, replicas_for
from autoscaler.policies.settings import REPLICA_PREFIX
from autoscaler.ports import Policy, PolicyWrapper


class IgnoreStuckPartitions(PolicyWrapper):
    """Alerts for stuck partitions in the reason, and hides their lag from the policy inside, so that nothing scales.

    Stuck: for `after_s` some lag, no progress (λ·Δt − Δlag of less than one event), one owner, and that owner ready.
    Its λ stays visible: it will have to be served when the fault is mended. Who is silent may not be serving, and of a
    partition that cannot be read nobody knows: neither is stuck.
    """

    def __init__(self, policy: Policy, *, after_s: float = 30.0) -> None:
        super().__init__(policy)
        self.after_s = after_s
        self._seen_s = 0.0
        self._seen: dict[int, _Seen] = {}
        """By partition, at the tick before."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return what the policy decides without the lag of stuck partitions, and name these."""
        stuck = self._stuck(observation)
        if not stuck:
            return self.policy.decide(observation)
        loads = (replace(one, lag=0) if one.partition in stuck else one for one in observation.partitions)
        wanted = self.policy.decide(replace(observation, partitions=tuple(loads)))
        first, one = next(iter(stuck.items()))
        more = f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
        alert = (
            f"partition {first}{more} stuck for {number(observation.at_s - one.since_s)} s with {one.lag} events of "
            f"lag, while its owner {one.owner} is ready; more replicas would not help"
        )
        return replace(wanted, reason=f"{wanted.reason}; alert: {alert}")

    def _stuck(self, observation: GroupObservation) -> dict[int, "_Seen"]:
        at_s, passed_s = observation.at_s, observation.at_s - self._seen_s
        ready = {one.name for one in observation.replicas if one.surely_ready}
        owners = observation.assignment
        seen: dict[int, _Seen] = {}
        for load in observation.partitions:
            owner, before, since_s = owners.get(load.partition, ""), self._seen.get(load.partition), at_s
            if before is not None and before.owner == owner and owner in ready and load.lag > 0 and not load.age_s:
                served = load.arrival_rate * passed_s - (load.lag - before.lag)
                since_s = before.since_s if served < 0.5 else at_s
            seen[load.partition] = _Seen(load.lag, owner, since_s)
        self._seen, self._seen_s = seen, at_s
        return {partition: one for partition, one in seen.items() if at_s - one.since_s >= self.after_s}


class _Seen(NamedTuple):
    lag: int
    owner: str
    since_s: float
    """Since when it may be stuck."""


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
        self._needed = WantedCounts(self.down_s)

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
    if set(replicas) == set(observation.replica_names) and not describe_unowned(observation):
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
class Fallback(PolicyWrapper):
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
        if not holds and (wrong := plan_problem(observation, wanted.plan)):
            return self._stand_in_for(observation, f"{self.name} made a plan that cannot be carried out: {wrong}")
        self.stand_in.rest()
        return wanted

    def _stand_in_for(self, observation: GroupObservation, fault: str) -> Decision:
        if not observation.partitions:
            return replace(no_change(observation, fault), fault=fault)
        plan, why = self.stand_in.plan(observation)
        why, now = f"{fault}; {why}", observation.requested_replicas
        if plan.count == now and (plan.assignment is None or plan.assignment == observation.assignment):
            decision = no_change(observation, f"{why}: hold {now}", counts_only=plan.assignment is None)
        else:
            decision = change(observation, plan, why)
        return replace(decision, fault=fault)


def plan_problem(observation: GroupObservation, plan: Plan) -> str:
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
