"""From what is wanted to the plan that can be put in force now, given who could join. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from autoscaler.model import Plan
from contracts.plan import Eviction, PlanRecord

REPAIR: Final = "repair"
"""Action of a plan that no policy asked for: a replica died, could not start, or is back."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What the group shall become, and why."""

    plan: Plan
    action: str
    reason: str
    carried_out: bool = False
    """It was in force, whole."""


def feasible(wanted: Plan, able: Collection[str]) -> Plan | None:
    """Return `wanted` without the replicas that could not join now; None when nobody could.

    A plan never names a replica that could not join. Partitions of those that are missing go, one by one, to the
    least loaded replica that is able, by count; everything else stays as wanted.
    """
    replicas = tuple(name for name in wanted.replicas if name in able)
    if not replicas:
        return None
    if wanted.assignment is None or len(replicas) == len(wanted.replicas):
        return Plan(replicas, wanted.assignment)
    kept = {partition: owner for partition, owner in wanted.assignment.items() if owner in replicas}
    held = Counter(kept.values())
    for partition in sorted(set(wanted.assignment) - set(kept)):
        owner = min(replicas, key=lambda name: (held[name], replicas.index(name)))
        kept[partition] = owner
        held[owner] += 1
    return Plan(replicas, dict(sorted(kept.items())))


def grown(plan: Plan, partitions: int, rates: Mapping[int, float]) -> Plan:
    """Return `plan` with an owner for every partition below `partitions`; those that have one keep it.

    Each new partition goes to the replica with the least Σλ. rates: partition → λ where known, events/s; a partition
    of unknown λ, as a new one is, counts as the mean of the others.
    """
    if plan.assignment is None:
        return plan
    typical = sum(rates.values()) / len(rates) if sum(rates.values()) > 0 else 1.0
    owners = dict(plan.assignment)
    load = dict.fromkeys(plan.replicas, 0.0)
    for partition, owner in owners.items():
        load[owner] = load.get(owner, 0.0) + rates.get(partition, typical)
    for partition in range(partitions):
        if partition not in owners:
            owners[partition] = min(plan.replicas, key=lambda name: (load[name], plan.replicas.index(name)))
            load[owners[partition]] += rates.get(partition, typical)
    return Plan(plan.replicas, dict(sorted(owners.items())))


def round_robin(replicas: tuple[str, ...], partitions: int) -> Plan:
    """Return the plan of a group about which nothing is known yet: equal counts."""
    return Plan(replicas, {partition: replicas[partition % len(replicas)] for partition in range(partitions)})


def moved(before: Mapping[int, str] | None, after: Mapping[int, str] | None) -> int:
    """Count the partitions that change their owner; 0 where either side left the owners to the group."""
    if before is None or after is None:
        return 0
    return sum(before.get(partition, owner) != owner for partition, owner in after.items())


def says(record: PlanRecord | None, plan: Plan) -> bool:
    """Return whether the plan in force is this one already."""
    return record is not None and set(record.replicas) == set(plan.replicas) and record.assignment == plan.assignment


def why_partial(wanted: Plan, named: Collection[str], awaited: Collection[str], evictions: tuple[Eviction, ...]) -> str:
    """Say in words why a plan was written that no policy asked for.

    named: the replicas of that plan. awaited: those of them that died and whose partitions wait for their return.
    """
    absent = [name for name in wanted.replicas if name not in named]
    if absent:
        why = "dead" if any(one.replica in absent for one in evictions) else "stopping or not starting"
        return f"without {', '.join(absent)}: {why}; its partitions go to the others"
    if awaited:
        return f"{', '.join(awaited)} died; its partitions wait for its return"
    if evictions:
        return f"{', '.join(one.replica for one in evictions)} died as a member: nobody shall wait for it"
    return f"all {wanted.count} replicas are ready again"
