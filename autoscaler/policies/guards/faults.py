"""Guards against faults: stuck partitions and a policy that fails."""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.packing.owners import fresh_names
from autoscaler.policies.planning import WantedCounts, change, describe_unowned, no_change, number, replicas_for
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.ports import Policy, PolicyWrapper

LEAST_PROGRESS: Final = 0.5  # events served between two ticks


class IgnoreStuckPartitions(PolicyWrapper):
    """Reports stuck partitions in the reason, and hides their lag from the inner policy, so the group does not scale.

    A partition is stuck if for `after_s` it has lag, has the same ready owner and makes no progress: λ·Δt − Δlag is
    less than half an event at each tick. Its λ stays visible, because its events must be served after the fix. It is
    not stuck if its owner is silent or its offsets cannot be read, because then its progress is unknown.
    """

    def __init__(self, policy: Policy, *, after_s: float = 30.0) -> None:
        super().__init__(policy)
        self.after_s = after_s
        self._last: GroupObservation | None = None
        self._since_s: dict[int, float] = {}
        """Partition → time of its last progress, for partitions that made none since the previous tick."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision without the lag of stuck partitions, and name them in the reason."""
        at_s, since_s = observation.at_s, self._without_progress(observation)
        self._last, self._since_s = observation, since_s
        stuck = {partition for partition, begun_s in since_s.items() if at_s - begun_s >= self.after_s}
        if not stuck:
            return self.policy.decide(observation)
        loads = tuple(replace(load, lag=0) if load.partition in stuck else load for load in observation.partitions)
        wanted = self.policy.decide(replace(observation, partitions=loads))
        first = next(load for load in observation.partitions if load.partition in stuck)
        more = f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
        alert = (
            f"partition {first.partition}{more} stuck for {number(at_s - since_s[first.partition])} s with {first.lag} "
            f"events of lag although its owner {observation.assignment[first.partition]} is ready; "
            "more replicas would not help"
        )
        return replace(wanted, reason=f"{wanted.reason}; alert: {alert}")

    def _without_progress(self, now: GroupObservation) -> dict[int, float]:
        if (last := self._last) is None:
            return {}
        passed_s, owners, since_s = now.at_s - last.at_s, now.assignment, self._since_s
        ready = {replica.name for replica in now.replicas if replica.surely_ready}
        return {
            load.partition: since_s.get(load.partition, last.at_s)
            for before, load in zip(last.partitions, now.partitions, strict=False)
            if load.lag > 0
            and load.arrival_rate * passed_s - (load.lag - before.lag) < LEAST_PROGRESS
            and not load.age_s
            and before.partition == load.partition
            and owners.get(load.partition) in ready
            and owners.get(load.partition) == last.assignment.get(load.partition)
        }


class CountByLoad:
    """Computes a plan while the policy fails. It is plain Python, because the compiler may be the cause.

    The count is the maximum of ⌈Σλ/(μ·f_up)⌉ and ⌈Σlag/(μ·W·f_up)⌉ within `fallback_down_s`. Only count limits apply.
    """

    def __init__(self, settings: PolicySettings, guards: GuardSettings) -> None:
        self._settings = settings
        self._guards = guards
        self.needed = WantedCounts(guards.fallback_down_s)

    def plan(self, observation: GroupObservation) -> tuple[Plan, str]:
        """Return the plan, and why. Nothing changes if the count is the same and every partition has an owner."""
        settings, guards = self._settings, self._guards
        rate = observation.service_rate * settings.f_up
        arriving = sum(load.arrival_rate for load in observation.partitions)
        lag = sum(load.lag for load in observation.partitions)
        needed = max(replicas_for(arriving, rate), replicas_for(lag, rate * settings.latency_target_s))
        _, most_needed = self.needed.note(observation, needed)
        partitions = len(observation.partitions)
        least = max(most_needed, guards.min_replicas, guards.safe_replicas)
        count = max(1, min(least, guards.max_replicas or partitions, partitions))
        why = f"{number(arriving)} events/s and {lag} events of lag need {needed} replicas"
        names = tuple(r.name for r in sorted(observation.replicas, key=lambda r: not r.surely_ready))[:count]
        staying = [name for name in observation.replica_names if name in names]
        fresh = fresh_names(settings.replica_prefix, {*staying, *observation.assignment.values()})
        replicas = (*staying, *islice(fresh, count - len(staying)))
        return Plan(replicas, None if guards.counts_only else _place(observation, replicas)), why


def _place(observation: GroupObservation, replicas: tuple[str, ...]) -> dict[int, str]:
    """Return the owners: unchanged if the replicas are, else largest λ first, each to the replica with the least λ.

    A partition stays with its owner while that one has no more than its fair share of λ and of partitions.
    """
    now = observation.assignment
    if set(replicas) == set(observation.replica_names) and not describe_unowned(observation):
        return {load.partition: now[load.partition] for load in observation.partitions}
    fair = sum(load.arrival_rate for load in observation.partitions) / len(replicas)
    most = -(-len(observation.partitions) // len(replicas))
    rates, counts = dict.fromkeys(replicas, 0.0), dict.fromkeys(replicas, 0)
    owners: dict[int, str] = {}
    for load in sorted(observation.partitions, key=lambda load: (-load.arrival_rate, load.partition)):
        owner = now.get(load.partition, "")
        if owner not in counts or counts[owner] >= most or rates[owner] + load.arrival_rate > fair:
            owner = min(replicas, key=lambda name: (rates[name], counts[name], replicas.index(name)))
        owners[load.partition] = owner
        rates[owner] += load.arrival_rate
        counts[owner] += 1
    return dict(sorted(owners.items()))


@dataclass(eq=False)
class Fallback(PolicyWrapper):
    """Decides by `CountByLoad` if the policy raises an error or makes an invalid plan.

    The policy is called again at every tick. `Decision.fault` of the new decision describes the policy's problem.
    """

    stand_in: CountByLoad

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision if it is valid, else the replacement."""
        try:
            wanted = self.policy.decide(observation)
        except Exception as error:  # any error: the group must continue
            return self._stand_in_for(observation, f"{self.name} failed: {type(error).__name__}: {error}")
        keeps_plan = wanted.action is Action.NO_CHANGE  # always valid
        if not keeps_plan and (problem := plan_problem(observation, wanted.plan)):
            return self._stand_in_for(observation, f"{self.name} made an invalid plan: {problem}")
        self.stand_in.needed.forget()
        return wanted

    def _stand_in_for(self, observation: GroupObservation, fault: str) -> Decision:
        if not observation.partitions:
            return replace(no_change(observation, fault), fault=fault)
        plan, why = self.stand_in.plan(observation)
        why, now = f"{fault}; {why}", observation.requested_replicas
        if plan.count == now and (plan.assignment is None or plan.assignment == observation.assignment):
            decision = no_change(observation, f"{why}: no change at {now}", counts_only=plan.assignment is None)
        else:
            decision = change(observation, plan, why)
        return replace(decision, fault=fault)


def plan_problem(observation: GroupObservation, plan: Plan) -> str:
    """Return why a plan is invalid, or an empty text."""
    partitions = len(observation.partitions)
    if not plan.replicas:
        return "it has no replica"
    if len(set(plan.replicas)) < plan.count:
        return "it names a replica twice"
    if plan.count > partitions:
        return f"it has {plan.count} replicas for {partitions} partitions"
    if plan.assignment is None:
        return ""
    known, assigned = {load.partition for load in observation.partitions}, set(plan.assignment)
    strangers = set(plan.assignment.values()) - set(plan.replicas)
    for wrong, why in (
        (assigned - known, "it names a partition that does not exist, {}"),
        (known - assigned, "partition {} is missing"),
        (strangers, "it assigns partitions to {}, which is none of its replicas"),
    ):
        if wrong:
            return why.format(min(wrong))
    return ""
