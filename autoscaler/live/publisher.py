"""From what is wanted to what is in force: writes each plan as soon as it can be carried out, and tells the journal."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from autoscaler.live.plan_log import PlanLog, PlanNotWrittenError
from autoscaler.live.processes import ProcessScaler
from autoscaler.model import Plan
from contracts.journal import JournalEntry, PlanWritten
from contracts.plan import Eviction, PlanRecord

REPAIR: Final = "repair"
"""Action of a plan that no policy asked for: a replica died, could not start, or is back."""
_WRITE_AGAIN_S: Final = 0.5
"""Pause before a plan that the brokers did not take is written again."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What the group shall become, and why."""

    plan: Plan
    action: str
    reason: str
    carried_out: bool = False
    """It was in force, whole."""


class Publisher:
    """What the group shall become, and its way into the plan log.

    grace_s: for so long the partitions of a replica that died wait for its return; then they go to the others.
    """

    def __init__(
        self,
        log: PlanLog,
        scaler: ProcessScaler,
        record: Callable[[JournalEntry], None],
        clock: Callable[[], float],
        *,
        grace_s: float = 0.0,
    ) -> None:
        self._log = log
        self._scaler = scaler
        self._record = record
        self._clock = clock
        self._grace_s = grace_s
        self._write_after_s = 0.0
        self._intent: Intent | None = None

    @property
    def in_force(self) -> PlanRecord | None:
        """The newest plan on the plan topic."""
        return self._log.newest

    @property
    def intent(self) -> Intent | None:
        """What the group is on its way to; equal to the plan in force once it has got there."""
        return self._intent

    def want(self, plan: Plan, action: str, reason: str) -> None:
        """From now on work towards `plan`; that replaces what was wanted before."""
        self._intent = Intent(plan, action, reason)

    def publish_if_due(self, epoch_seen: int) -> None:
        """Write the wanted plan once all its replicas could join; if one of them is absent, what is feasible.

        epoch_seen: the highest that a replica has reported; epochs grow beyond it. Raises FencedError.
        """
        intent = self._intent
        if intent is None or self._clock() < self._write_after_s:
            return
        able = {name for name in intent.plan.replicas if self._scaler.ready(name)}
        awaited = [name for name in intent.plan.replicas if self._awaited(name)] if able else []
        evictions = tuple(self._scaler.evictions)
        complete = len(able) == intent.plan.count
        urgent = bool(evictions) or any(self._scaler.absent(name) for name in intent.plan.replicas)
        plan = feasible(intent.plan, able.union(awaited)) if complete or urgent else None
        if plan is None or (not evictions and says(self.in_force, plan)):
            return
        planned = complete and not intent.carried_out
        action = intent.action if planned else REPAIR
        reason = intent.reason if planned else why_partial(intent.plan, plan.replicas, awaited, evictions)
        before = self.in_force
        self._log.stay_above(epoch_seen)
        try:
            written = self._log.write(
                plan.replicas, plan.assignment, reason, evictions, self._grace_s if awaited else 0.0
            )
        except PlanNotWrittenError:
            self._write_after_s = self._clock() + _WRITE_AGAIN_S
            return
        del self._scaler.evictions[: len(evictions)]
        self._intent = replace(intent, carried_out=intent.carried_out or complete)
        self._record(
            PlanWritten(
                at_us=written.at_us,
                epoch=written.epoch,
                action=action,
                reason=reason,
                replicas=written.replicas,
                assignment=written.assignment,
                moved=moved(None if before is None else before.assignment, written.assignment),
            )
        )

    def _awaited(self, name: str) -> bool:
        """Whether `name` was in force when it died, and its partitions still wait for it."""
        died_s = self._scaler.died_s(name)
        named = self.in_force is not None and name in self.in_force.replicas
        return named and died_s is not None and self._clock() - died_s < self._grace_s


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
