"""The publisher: writes what is feasible of the intended plan, as soon as it is, and journals it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from autoscaler.live.plan_log import PlanLog, PlanNotWrittenError
from autoscaler.live.progress_reader import PlanAdoption
from autoscaler.live.replicas import ReplicaScaler
from autoscaler.model import Plan
from autoscaler.packing.owners import count_moves, spread
from contracts.fields import MAX_EPOCH_LEAD
from contracts.journal import JournalEntry, PlanWritten
from contracts.plan import Eviction, PlanRecord
from contracts.progress import Progress

ACTION_REPAIR: Final = "repair"
"""Action of a plan without a decision: a replica died, could not start, or is ready again."""
ACTION_PART: Final = "part"
"""Action of a plan for the replicas that are ready, while others of the intended plan still start."""
ACTION_COUNT: Final = "count"
"""Action of a plan that changes only the replica count that KEDA or an HPA is to start."""
ACTION_REPEAT: Final = "repeat"
"""Action of a plan that is written again because a member did not adopt it."""
_RETRY_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Intent:
    """The intended plan, and why."""

    plan: Plan
    action: str
    reason: str
    was_in_force: bool = False
    """Whether the complete plan was in force once."""


class _DuePlan(NamedTuple):
    """A plan to write now."""

    plan: Plan
    action: str
    reason: str
    evictions: tuple[Eviction, ...]
    grace_s: float
    is_complete: bool = False
    """It is the whole intended plan, not only its feasible part."""


class Publisher:
    """Holds the intended plan and writes it to the plan log.

    grace_s: how long the partitions of a dead replica wait for its restart before they go to other replicas.
    adoption: observes whether members adopt the plans. A plan that is not adopted is written again.
    report_problem: called with the current problem of the plans; empty: none.
    """

    def __init__(
        self,
        log: PlanLog,
        scaler: ReplicaScaler,
        record: Callable[[JournalEntry], None],
        clock: Callable[[], float],
        *,
        adoption: PlanAdoption,
        report_problem: Callable[[str], None],
        grace_s: float = 0.0,
    ) -> None:
        self.log, self._scaler, self._record, self._clock = log, scaler, record, clock
        self._adoption, self._report_problem, self._grace_s = adoption, report_problem, grace_s
        self._write_after_s, self._unwritten = 0.0, ""
        self._feasible: tuple[tuple[object, ...], Plan | None] = (), None
        """From what the feasible part of the intended plan was made, and that part."""
        self.intent: Intent | None = None
        """The intended plan. It equals the plan in force once it was written completely."""

    @property
    def in_force(self) -> PlanRecord | None:
        """The newest plan on the plan topic."""
        return self.log.newest

    def want(self, plan: Plan, action: str, reason: str) -> None:
        """Replace the intended plan."""
        self.intent = Intent(plan, action, reason)

    def publish_if_due(self, reports: Collection[Progress], *, stops_all: bool = False) -> None:
        """Write what is feasible of the intended plan, if it is not in force.

        A replica gets its partitions once it is ready. Until then their present owners keep them; a replica that has
        died or fails to start is left out. The first plan waits for all its replicas. A plan without owners waits for
        a new replica, and so does each plan if stops_all: a rebalance stops the whole group. reports: recent reports.
        The new epoch is above all possible epochs in them. Raises FencedError.
        """
        epochs = {report.replica: report.assigned_epoch for report in reports if self._scaler.is_ready(report.replica)}
        self._adoption.observe(self.in_force, epochs)
        highest = self.log.epoch + MAX_EPOCH_LEAD
        impossible = ", ".join(f"{r.replica} reports plan {r.epoch}" for r in reports if r.epoch > highest)
        why = f"{impossible}, newer than any plan; restart the autoscaler, then these replicas" if impossible else ""
        self._report_problem(self._unwritten or why or self._adoption.describe_laggards() or self.log.unusable)
        intent, before = self.intent, self.in_force
        if intent is None or self._clock() < self._write_after_s:
            return
        due = self._due(intent, stops_all=stops_all) or self._recount(intent) or self._repetition()
        if due is None:
            return
        self.log.stay_above(max((report.epoch for report in reports if report.epoch <= highest), default=0))
        plan, write, wanted = due.plan, self.log.write, self._scaler.launcher.wanted
        try:
            written = write(plan.replicas, plan.assignment, due.reason, due.evictions, due.grace_s, wanted=wanted)
        except PlanNotWrittenError as failed:
            self._write_after_s = self._clock() + _RETRY_S
            self._unwritten = str(failed)
            return
        self._unwritten = ""
        self._scaler.evictions[:] = [eviction for eviction in self._scaler.evictions if eviction not in due.evictions]
        self.intent = replace(intent, was_in_force=intent.was_in_force or due.is_complete)
        self._adoption.on_written(written)
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

    def _due(self, intent: Intent, *, stops_all: bool) -> _DuePlan | None:
        found, scaler, evictions = self.in_force, self._scaler, tuple(self._scaler.evictions)
        names = intent.plan.replicas
        ready = frozenset(name for name in names if scaler.is_ready(name))
        awaited = [name for name in names if self._awaited(name)] if ready else []
        complete = len(ready) == intent.plan.count
        is_repair = bool(evictions) or any(scaler.is_absent(name) for name in names)
        awaits_new = stops_all or intent.plan.assignment is None
        if not (complete or is_repair) and (found is None or (awaits_new and ready.issubset(found.replicas))):
            return None
        plan = self._feasible_part(intent.plan, ready.union(awaited))
        current = found and (set(found.replicas), found.assignment)
        if plan is None or (not evictions and current == (set(plan.replicas), plan.assignment)):
            return None
        grace_s = self._grace_s if awaited else 0.0
        if complete and not intent.was_in_force:
            return _DuePlan(plan, intent.action, intent.reason, evictions, grace_s, is_complete=True)
        if not complete and not is_repair:
            starting = ", ".join(name for name in names if name not in ready)
            reason = f"until {starting} can serve, the present owners keep the partitions"
            return _DuePlan(plan, ACTION_PART, reason, evictions, grace_s)
        reason = _why_partial(intent.plan, plan.replicas, awaited, evictions)
        return _DuePlan(plan, ACTION_REPAIR, reason, evictions, grace_s, is_complete=complete)

    def _feasible_part(self, wanted: Plan, able: frozenset[str]) -> Plan | None:
        """Return `feasible_plan`. Every step needs it, and it takes milliseconds with thousands of partitions."""
        found, scaler = self.in_force, self._scaler
        known = {*scaler.requested}.intersection(found.replicas if found else ())
        present = frozenset(name for name in known if not scaler.is_absent(name))
        made_from = wanted, able, present, found and found.epoch
        if self._feasible[0] != made_from:
            self._feasible = made_from, feasible_plan(wanted, able, present, (found and found.assignment) or {})
        return self._feasible[1]

    def _recount(self, intent: Intent) -> _DuePlan | None:
        """Return the plan in force with a new replica count, if KEDA or an HPA starts the replicas.

        Before the first plan: the feasible part of the intended plan, as soon as one replica is ready.
        """
        wanted, found = self._scaler.launcher.wanted, self.in_force
        if found is not None:
            plan = Plan(found.replicas, found.assignment) if found.count != max(wanted, len(found.replicas)) else None
        else:
            ready = frozenset(name for name in intent.plan.replicas if self._scaler.is_ready(name))
            plan = feasible_plan(intent.plan, ready, frozenset(), {})
        if not wanted or plan is None:
            return None
        evictions, grace_s = (found.evictions, found.grace_s) if found else ((), 0.0)
        return _DuePlan(plan, ACTION_COUNT, f"{wanted} replicas are requested", evictions, grace_s)

    def _repetition(self) -> _DuePlan | None:
        found = self.in_force
        if found is None or not self._adoption.is_repeat_due:
            return None
        reason = f"{self._adoption.describe_laggards()}; written again"
        return _DuePlan(Plan(found.replicas, found.assignment), ACTION_REPEAT, reason, found.evictions, found.grace_s)

    def _awaited(self, name: str) -> bool:
        died_s = self._scaler.died_s(name)
        named = self.in_force is not None and name in self.in_force.replicas
        return named and died_s is not None and self._clock() - died_s < self._grace_s


def feasible_plan(
    wanted: Plan, able: frozenset[str], present: frozenset[str], owners: Mapping[int, str]
) -> Plan | None:
    """Return the part of `wanted` that its replicas in `able` can serve; None: there is none.

    present: replicas of the plan in force that are not known to be gone. owners: owners in that plan. A partition of a
    replica that is not in `able` stays with its present owner.
    """
    if able.isdisjoint(wanted.replicas):
        return None
    names = [name for name in wanted.replicas if name in able or name in present]
    if wanted.assignment is None:
        return Plan(tuple(dict.fromkeys([*names, *sorted(present if len(able) < wanted.count else ())])), None)
    kept = {
        partition: owners[partition]
        for partition, owner in wanted.assignment.items()
        if owner not in able and owners.get(partition) in present
    }
    plan = Plan(wanted.replicas, dict(wanted.assignment) | kept)
    return complete_plan(plan, tuple(dict.fromkeys([*names, *kept.values()])), wanted.assignment)


def complete_plan(plan: Plan, names: tuple[str, ...], partitions: Collection[int]) -> Plan:
    """Return `plan` for the replicas `names` and exactly these partitions.

    A partition without an owner in `names` goes to the replica with the fewest partitions. Others keep their owner.
    """
    if plan.assignment is None:
        return Plan(names, None)
    able = frozenset(names)
    owners = {number: owner for number in partitions if (owner := plan.assignment.get(number, "")) in able}
    spread(owners, sorted(set(partitions) - owners.keys()), names)
    return Plan(names, dict(sorted(owners.items())))


def _why_partial(plan: Plan, named: Collection[str], awaited: Collection[str], evictions: tuple[Eviction, ...]) -> str:
    """Return the reason of a plan without a decision. awaited: dead replicas whose partitions wait for a restart."""
    dead = {eviction.replica for eviction in evictions}
    absent = [name for name in plan.replicas if name not in named]
    if absent:
        listed = (f"{name} ({'dead' if name in dead else 'stopping or not starting'})" for name in absent)
        return f"without {', '.join(listed)}; the other replicas get the partitions"
    if awaited:
        return f"{', '.join(awaited)} died; the partitions wait for the restart"
    if evictions:
        return f"{', '.join(sorted(dead))} died and is evicted from the group"
    return f"all {plan.count} replicas are ready again"
