"""What decides while the policy cannot: a count by rate and lag, in plain Python, for a compiler may be what failed."""

from itertools import islice

from autoscaler.model import GroupObservation, Plan
from autoscaler.packing.owners import fresh_names
from autoscaler.policies.planning import MostWanted, number, replicas_for


class CountByLoad:
    """Replicas = the larger of ⌈Σλ/(μ·f)⌉ and ⌈Σlag/(μ·W·f)⌉; fewer than there are only once that has sufficed a while.

    Within the limits that the policy has; what guards forbid otherwise is not asked.
    down_s: for so long fewer must have sufficed before a replica is stopped.
    """

    def __init__(
        self,
        *,
        latency_target_s: float,
        share: float,
        minimum: int = 1,
        maximum: int = 0,
        down_s: float = 60.0,
        counts_only: bool = False,
        replica_prefix: str = "payment",
    ) -> None:
        self._latency_target_s = latency_target_s
        self._share = share
        self._minimum = minimum
        self._maximum = maximum
        self._counts_only = counts_only
        self._prefix = replica_prefix
        self._needed = MostWanted(down_s)

    def plan(self, observation: GroupObservation) -> tuple[Plan, str]:
        """Return the plan, and why. Replicas and owners stay where the count does and every partition has an owner."""
        rate = observation.service_rate * self._share
        arriving = sum(load.arrival_rate for load in observation.partitions)
        lag = sum(load.lag for load in observation.partitions)
        needed = max(replicas_for(arriving, rate), replicas_for(lag, rate * self._latency_target_s))
        count = self._bounded(self._needed.note(observation, needed), len(observation.partitions))
        why = f"{number(arriving)} events/s and {lag} events of lag ask for {needed} by count"
        names = tuple(one.name for one in sorted(observation.replicas, key=lambda one: not one.surely_ready))[:count]
        kept = [name for name in observation.replica_names if name in names]
        new = islice(fresh_names(self._prefix, {*kept, *observation.assignment.values()}), count - len(kept))
        replicas = (*kept, *new)
        return Plan(replicas, None if self._counts_only else _placed(observation, replicas)), why

    def rest(self) -> None:
        """Forget what was needed: the policy decides again."""
        self._needed.forget()

    def _bounded(self, count: int, partitions: int) -> int:
        return max(1, min(max(count, self._minimum), self._maximum or partitions, partitions))


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
