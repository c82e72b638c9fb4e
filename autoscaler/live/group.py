"""The live side of the ConsumerGroup port: observe through Kafka, act through the plan log and the scaler."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from autoscaler.estimation import ServiceRate, WorkCounters
from autoscaler.live.loads import LoadReader
from autoscaler.live.plan_log import PlanLog, PlanNotWrittenError
from autoscaler.live.processes import ProcessScaler
from autoscaler.live.progress_reader import ProgressReader
from autoscaler.live.realisation import REPAIR, Intent, feasible, moved, round_robin, says, why_partial
from autoscaler.model import Decision, GroupObservation, Plan, Replica
from autoscaler.ports import NotReadyError
from contracts.journal import JournalEntry, PlanWritten
from contracts.plan import PlanRecord
from contracts.progress import Progress, ReplicaState

_WRITE_AGAIN_S: Final = 0.5
"""Pause before a plan that the brokers did not take is written again."""
HUNG_AFTER_S: Final = 15.0
"""A replica that has not reported for so long, while the brokers answered all the time, is taken for hung and killed:
the group has long given its partitions away (session 6 s), and without its report nothing can be decided."""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """Numbers that are known at any time, also when nothing can be observed."""

    requested_replicas: int
    ready_replicas: int
    planned_replicas: int
    epoch: int
    """Of the plan in force; 0 without one."""
    service_rate: float
    """μ, events/s."""


class LiveGroup:
    """A consumer group on Kafka whose replicas are processes. Implements autoscaler.ports.ConsumerGroup."""

    def __init__(
        self,
        *,
        loads: LoadReader,
        reports: ProgressReader,
        log: PlanLog,
        scaler: ProcessScaler,
        service_rate: ServiceRate,
        record: Callable[[JournalEntry], None],
        partitions: int,
        rebalance_time_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._loads = loads
        self._reports = reports
        self._log = log
        self._scaler = scaler
        self._service_rate = service_rate
        self._record = record
        self._partitions = partitions
        self._rebalance_time_s = rebalance_time_s
        self._clock = clock
        self._intent: Intent | None = None
        self._write_after_s = 0.0
        self._blind_s = clock()
        """When the brokers last did not answer."""

    @property
    def in_force(self) -> PlanRecord | None:
        """The newest plan on the plan topic."""
        return self._log.newest

    @property
    def intent(self) -> Intent | None:
        """What the group is on its way to; equal to the plan in force once it has got there."""
        return self._intent

    def start(self, initial: tuple[str, ...]) -> None:
        """Take over: adopt what runs, keep the plan in force; without any, make one for the `initial` replicas."""
        self._scaler.adopt(self._reports.poll())
        found = self._log.newest
        if found is None or not found.replicas:
            plan, reason = round_robin(initial, self._partitions), "first plan: nothing is known yet"
        elif found.assignment is not None and set(found.assignment) != set(range(self._partitions)):
            plan = round_robin(found.replicas, self._partitions)
            reason = f"plan {found.epoch} was made for {len(found.assignment)} partitions, now {self._partitions}"
        else:
            plan, reason = Plan(found.replicas, found.assignment), f"plan {found.epoch} stays in force"
        self._intent = Intent(plan, "start", reason)
        self._scaler.request(plan.replicas)
        self.advance()

    def observe(self) -> GroupObservation:
        """Read offsets and reports. Raises NotReadyError naming the number that is unknown or stale."""
        self._reports.poll()
        try:
            at_s, partitions = self._loads.read()
        except NotReadyError:
            self._blind_s = self._clock()
            raise
        if self.in_force is None or self._intent is None:
            raise NotReadyError("plan: none is in force yet")
        wanted = self._intent.plan
        replicas = tuple(
            Replica(name, self._scaler.ready(name)) for name in self._scaler.requested if name in wanted.replicas
        )
        for replica in replicas:
            if replica.ready:
                self._learn(self._reports.fresh(replica.name))
        return GroupObservation(
            at_s=at_s,
            partitions=partitions,
            replicas=replicas,
            assignment=self._owners() if wanted.assignment is None else wanted.assignment,
            service_rate=self._service_rate.service_rate,
            rebalance_time_s=self._rebalance_time_s,
        )

    def apply(self, decision: Decision) -> None:
        """Replace what is wanted, start what is missing, and go as far as is possible at once."""
        self._intent = Intent(decision.plan, decision.action.value, decision.reason)
        self._scaler.request(decision.plan.replicas)
        self.advance()

    def advance(self) -> None:
        """Take every step that is due now: processes, then the plan, then releases. Called often, waits for nobody.

        Raises FencedError when another controller has taken over.
        """
        self._scaler.reconcile(self._reports.poll())
        self._kill_hung()
        if self._intent is None:
            return
        if self._clock() >= self._write_after_s:
            self._publish_if_due(self._intent)
        named = () if self.in_force is None else self.in_force.replicas
        for name in self._scaler.requested:
            if name not in named and name not in self._intent.plan.replicas:
                self._scaler.release(name)

    def status(self) -> GroupStatus:
        """Return what is known without asking anybody."""
        names = self._scaler.requested
        return GroupStatus(
            requested_replicas=len(names),
            ready_replicas=sum(self._scaler.ready(name) for name in names),
            planned_replicas=0 if self._intent is None else self._intent.plan.count,
            epoch=0 if self.in_force is None else self.in_force.epoch,
            service_rate=self._service_rate.service_rate,
        )

    def _publish_if_due(self, intent: Intent) -> None:
        """Write the wanted plan once all its replicas could join; if one of them is dead or fails, what is feasible."""
        able = {name for name in intent.plan.replicas if self._scaler.ready(name)}
        evictions = tuple(self._scaler.evictions)
        complete = len(able) == intent.plan.count
        urgent = bool(evictions) or any(self._scaler.failing(name) for name in intent.plan.replicas)
        plan = feasible(intent.plan, able) if complete or urgent else None
        if plan is None or (not evictions and says(self.in_force, plan)):
            return
        planned = complete and not intent.carried_out
        action = intent.action if planned else REPAIR
        reason = intent.reason if planned else why_partial(intent.plan, able, evictions)
        before = self.in_force
        self._log.stay_above(self._reports.highest_epoch())
        try:
            written = self._log.write(plan.replicas, plan.assignment, reason, evictions)
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

    def _kill_hung(self) -> None:
        if self._clock() - self._blind_s < HUNG_AFTER_S:
            return
        for name in self._scaler.requested:
            age_s = self._reports.age_s(name)
            if self._scaler.ready(name) and age_s > HUNG_AFTER_S:
                self._scaler.kill(name, f"hung: its last report is {age_s:.0f} s old")

    def _learn(self, report: Progress) -> None:
        self._service_rate.observe(WorkCounters(report.replica, report.incarnation, report.processed, report.busy_us))

    def _owners(self) -> Mapping[int, str]:
        """Who owns what by the members' own reports, for plans that leave that to the group."""
        members = [self._reports.fresh(name) for name in self._scaler.requested if self._scaler.ready(name)]
        owners: dict[int, str] = {}
        for report in sorted(members, key=lambda report: report.generation):  # the later generation has the last word
            if report.state is ReplicaState.MEMBER:
                owners |= dict.fromkeys(report.partitions, report.replica)
        for partition in range(self._partitions):
            if partition not in owners:
                raise NotReadyError(f"owner of partition {partition}: no replica reports it")
        return owners
