"""From what is wanted to what is in force: writes each plan as soon as it can be carried out, and journals it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from autoscaler.live.plan_log import PlanLog, PlanNotWrittenError
from autoscaler.live.progress_reader import Uptake
from autoscaler.live.replicas import ReplicaScaler
from autoscaler.model import Plan
from autoscaler.packing.owners import count_moves, spread_by_count
from contracts.journal import JournalEntry, PlanWritten
from contracts.plan import Eviction, PlanRecord

REPAIR: Final = "repair"
"""Action of a plan that no policy asked for: a replica died, could not start, or is back."""
COUNT: Final = "count"
"""Action of a plan that repeats the one before, with another count of replicas that others bring."""
REPEAT: Final = "repeat"
"""Action of a plan that repeats the one before, because a member did not take that."""
_WRITE_AGAIN_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Intent:
    """What the group shall become, and why."""

    plan: Plan
    action: str
    reason: str
    carried_out: bool = False
    """It was in force, whole."""


class _Due(NamedTuple):
    """A plan that is to be written now."""

    plan: Plan
    action: str
    reason: str
    evictions: tuple[Eviction, ...]
    grace_s: float
    whole: bool = False
    """It is the intent, not what is feasible of it."""


class Publisher:
    """What the group shall become, and its way into the plan log.

    grace_s: for so long the partitions of a replica that died wait for its return; then they go to the others.
    uptake: looks whether members take the plans; one that is not taken is written again.
    trouble: called with what is wrong with the plans now, empty when nothing is.
    """

    def __init__(
        self,
        log: PlanLog,
        scaler: ReplicaScaler,
        record: Callable[[JournalEntry], None],
        clock: Callable[[], float],
        *,
        uptake: Uptake,
        trouble: Callable[[str], None],
        grace_s: float = 0.0,
    ) -> None:
        self._log, self._scaler, self._record, self._clock = log, scaler, record, clock
        self._uptake, self._trouble, self._grace_s = uptake, trouble, grace_s
        self._write_after_s, self._unwritten = 0.0, ""
        self.intent: Intent | None = None
        """What the group is on its way to; equal to the plan in force once it has got there."""

    @property
    def in_force(self) -> PlanRecord | None:
        """The newest plan on the plan topic."""
        return self._log.newest

    def want(self, plan: Plan, action: str, reason: str) -> None:
        """From now on work towards `plan`; that replaces what was wanted before."""
        self.intent = Intent(plan, action, reason)

    def publish_if_due(self, epoch_seen: int, epochs: Mapping[str, int]) -> None:
        """Write the wanted plan once all its replicas could join; if one of them is absent, what is feasible.

        epoch_seen: the highest that a replica has reported; epochs grow beyond it. epochs: member → plan that its
        assignment was made from, of those who have reported lately. Raises FencedError.
        """
        self._uptake.look(self.in_force, {name: epoch for name, epoch in epochs.items() if self._scaler.ready(name)})
        self._trouble(self._unwritten or self._uptake.why_late())
        intent, before = self.intent, self.in_force
        if intent is None or self._clock() < self._write_after_s:
            return
        due = self._due(intent) or self._recount(intent) or self._repetition()
        if due is None:
            return
        self._log.stay_above(epoch_seen)
        plan, wanted = due.plan, self._scaler.launcher.wanted
        try:
            written = self._log.write(
                plan.replicas, plan.assignment, due.reason, due.evictions, due.grace_s, wanted=wanted
            )
        except PlanNotWrittenError as failed:
            self._write_after_s = self._clock() + _WRITE_AGAIN_S
            self._unwritten = str(failed)
            return
        self._unwritten = ""
        self._scaler.evictions[:] = [one for one in self._scaler.evictions if one not in due.evictions]
        self.intent = replace(intent, carried_out=intent.carried_out or due.whole)
        self._uptake.written(written)
        self._record(
            PlanWritten(
                at_us=written.at_us,
                epoch=written.epoch,
                action=due.action,
                reason=due.reason,
                replicas=written.replicas,
                assignment=written.assignment,
                moved=count_moves(before.assignment if before else None, written.assignment),
            )
        )

    def _due(self, intent: Intent) -> _Due | None:
        """Return the plan that brings the group nearer to `intent`, None when there is nothing to write now."""
        names = intent.plan.replicas
        able = {name for name in names if self._scaler.ready(name)}
        awaited = [name for name in names if self._awaited(name)] if able else []
        evictions = tuple(self._scaler.evictions)
        complete = len(able) == intent.plan.count
        urgent = bool(evictions) or any(self._scaler.absent(name) for name in names)
        plan = feasible(intent.plan, able.union(awaited)) if complete or urgent else None
        found = self.in_force
        said = found and (set(found.replicas), found.assignment)
        if plan is None or (not evictions and said == (set(plan.replicas), plan.assignment)):
            return None
        grace_s = self._grace_s if awaited else 0.0
        if complete and not intent.carried_out:
            return _Due(plan, intent.action, intent.reason, evictions, grace_s, whole=True)
        reason = _why_partial(intent.plan, plan.replicas, awaited, evictions)
        return _Due(plan, REPAIR, reason, evictions, grace_s, whole=complete)

    def _recount(self, intent: Intent) -> _Due | None:
        """Return the plan in force with a new count, where others bring replicas by it.

        Before the first plan: what is feasible, as soon as one replica runs.
        """
        wanted, found = self._scaler.launcher.wanted, self.in_force
        if found is not None:
            plan = Plan(found.replicas, found.assignment) if found.count != max(wanted, len(found.replicas)) else None
        else:
            plan = feasible(intent.plan, {name for name in intent.plan.replicas if self._scaler.ready(name)})
        if not wanted or plan is None:
            return None
        evictions, grace_s = (found.evictions, found.grace_s) if found else ((), 0.0)
        return _Due(plan, COUNT, f"{wanted} replicas are wanted", evictions, grace_s)

    def _repetition(self) -> _Due | None:
        found = self.in_force
        if found is None or not self._uptake.repeat_is_due:
            return None
        reason = f"{self._uptake.why_late()}: written again"
        return _Due(Plan(found.replicas, found.assignment), REPEAT, reason, found.evictions, found.grace_s)

    def _awaited(self, name: str) -> bool:
        died_s = self._scaler.died_s(name)
        named = self.in_force is not None and name in self.in_force.replicas
        return named and died_s is not None and self._clock() - died_s < self._grace_s


def feasible(wanted: Plan, able: Collection[str]) -> Plan | None:
    """Return `wanted` without the replicas that could not join now; None when none could.

    A plan never names a replica that could not join. Partitions of those that are missing go, one by one, to the
    least loaded replica that is able, by count; everything else stays as wanted.
    """
    replicas = tuple(name for name in wanted.replicas if name in able)
    if not replicas:
        return None
    if wanted.assignment is None or len(replicas) == len(wanted.replicas):
        return Plan(replicas, wanted.assignment)
    kept = {partition: owner for partition, owner in wanted.assignment.items() if owner in replicas}
    spread_by_count(kept, sorted(wanted.assignment.keys() - kept), replicas)
    return Plan(replicas, dict(sorted(kept.items())))


def extend_plan(plan: Plan, partitions: int, rates: Mapping[int, float]) -> Plan:
    """Return `plan` with an owner for every partition below `partitions`; those that have one keep it.

    Each new partition goes to the replica with the least Σλ. rates: partition → λ where known, events/s; a partition
    of unknown λ, as a new one is, counts as the mean of the others.
    """
    if plan.assignment is None:
        return plan
    typical = sum(rates.values()) / len(rates) if sum(rates.values()) > 0 else 1.0
    owners = dict(plan.assignment)
    load = dict.fromkeys(plan.replicas, 0.0)
    for partition in [*owners, *(new for new in range(partitions) if new not in owners)]:
        if partition not in owners:
            owners[partition] = min(plan.replicas, key=lambda name: (load[name], plan.replicas.index(name)))
        load[owners[partition]] = load.get(owners[partition], 0.0) + rates.get(partition, typical)
    return Plan(plan.replicas, dict(sorted(owners.items())))


def _why_partial(wanted: Plan, named: Collection[str], awaited: Collection[str], evictions: Sequence[Eviction]) -> str:
    """Return why a plan was written that no policy asked for. awaited: dead replicas whose partitions wait for them."""
    absent = [name for name in wanted.replicas if name not in named]
    if absent:
        why = "dead" if any(one.replica in absent for one in evictions) else "stopping or not starting"
        return f"without {', '.join(absent)}: {why}; its partitions go to the others"
    if awaited:
        return f"{', '.join(awaited)} died; its partitions wait for its return"
    if evictions:
        return f"{', '.join(one.replica for one in evictions)} died as a member: no other waits for it"
    return f"all {wanted.count} replicas are ready again"
