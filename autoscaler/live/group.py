"""Live implementation of the ConsumerGroup port: observes through Kafka, acts through the plan log and the scaler."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autoscaler.estimation.rebalance_time import RebalanceTime
from autoscaler.estimation.service_rates import ServiceRates, WorkCounters
from autoscaler.live.loads import LoadReader
from autoscaler.live.observed_group import PROPOSES
from autoscaler.live.problems import PERSISTENT_TICKS
from autoscaler.live.progress_reader import ProgressReader
from autoscaler.live.publisher import ACTION_REPAIR, Intent, Publisher, complete_plan
from autoscaler.live.replicas import ReplicaScaler
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.silence import Silence
from autoscaler.model import Decision, GroupObservation, Plan, RecentArrivals, Replica
from autoscaler.packing.owners import round_robin, spread
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus
from contracts.clock import monotonic_s
from contracts.progress import RebalanceKind, ReplicaState
from contracts.rebalance_protocol import RebalanceProtocol


class LiveGroup:
    """A consumer group on Kafka whose replicas this autoscaler starts and stops. Implements ports.ConsumerGroup.

    If another runtime assigns the partitions (setting `runtime`), plans have only a count, and members report owners.
    """

    def __init__(
        self,
        settings: AutoscalerSettings,
        *,
        loads: LoadReader,
        reports: ProgressReader,
        publisher: Publisher,
        scaler: ReplicaScaler,
        service_rates: ServiceRates,
        rebalance_time: RebalanceTime,
        report_problem: Callable[..., None],
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._settings, self._loads, self._reports = settings, loads, reports
        self._publisher, self._scaler = publisher, scaler
        self._service_rates, self._rebalance_time = service_rates, rebalance_time
        self._learned_rates: dict[str, float] = {}
        """Replica → learned service rate (μ), events/s. A replica that served nothing gets the others' rate."""
        self._latencies: dict[str, tuple[int, ...]] = {}
        """Replica → events by latency (`Progress.latencies`), if it counts them."""
        self._report_problem, self._clock = report_problem, clock
        self._silence = Silence(scaler, reports, loads, report_problem=report_problem, clock=clock)

    @property
    def leads(self) -> bool:
        """Whether this autoscaler leads the group. Another member may lead a group of other consumers."""
        return True

    @property
    def rebalance_time_s(self) -> float:
        """Rebalance time (t_r) that policies assume, seconds."""
        return self._rebalance_time.planned_s()

    @property
    def stops_all(self) -> bool:
        """Whether each plan stops the whole group for a rebalance."""
        return not self._settings.runtime and self._settings.rebalance_protocol is RebalanceProtocol.EAGER

    def page(self) -> dict[str, Any]:
        """Return the data of the page about the plan."""
        intent, learned = self._publisher.intent, self._rebalance_time
        planned_s, learned_s, count = learned.planned_s(), learned.learned_s, learned.pause_count
        wanted = intent and {
            "replicas": intent.plan.replicas,
            "assignment": None if intent.plan.assignment is None else dict(intent.plan.assignment),
            "action": intent.action,
            "reason": intent.reason,
        }
        return {
            "in_force": self._publisher.in_force,
            "wanted": wanted,
            "rebalance_time": {"planned_for_s": planned_s, "learned_s": learned_s, "pauses_seen": count},
            "service_rates": self._learned_rates,
            "latencies": self._latencies,
        }

    def start(self, initial: tuple[str, ...]) -> None:
        """Adopt running replicas and keep the plan in force. Without a plan, make one for the `initial` replicas."""
        self._scaler.adopt(self._reports.poll(), found.replicas if (found := self._publisher.in_force) else ())
        self._reports.is_ours = self._scaler.is_source_of
        plan, reason = self._first_plan(initial, self._loads.partitions)
        if self._settings.runtime:
            plan = Plan(plan.replicas, None)
        self._publisher.want(plan, "start", reason)
        self._scaler.request(plan.replicas)
        self.advance()

    def _first_plan(self, initial: tuple[str, ...], partitions: int) -> tuple[Plan, str]:
        found = self._publisher.in_force
        is_proposal = found is not None and found.reason.startswith(PROPOSES)
        if found is None or not found.replicas or is_proposal:
            reason = self._publisher.log.unusable or "no load was measured yet"
            names = (self._scaler.requested if is_proposal else ()) or initial
            return Plan(names, round_robin(names, partitions)), f"first plan: {reason}"
        most = min(self._settings.max_replicas or partitions, partitions)  # below the minimum, the guards add replicas
        names = tuple(dict.fromkeys(found.replicas))[:most]
        plan = complete_plan(Plan(found.replicas, found.assignment), names, range(partitions))
        if (plan.replicas, plan.assignment) == (found.replicas, found.assignment):
            return plan, f"plan {found.epoch} stays in force"
        return plan, f"plan {found.epoch} did not fit {partitions} partitions and {most} replicas, or had other owners"

    def observe(self) -> GroupObservation:
        """Read offsets and reports. An unreadable lag is replaced by its upper bound and marked with its age.

        Raises NotReadyError if that bound is unknown, or before the first plan, or if no replica reports a partition.
        """
        self._reports.poll()
        try:
            at_s, partitions = self._loads.read()
        except NotReadyError as missing:
            self._silence.note_outage()
            self._report_problem("offsets", f"no decisions: cannot read {missing}", after=PERSISTENT_TICKS)
            raise
        self._report_problem("offsets", self._loads.missing_data)
        self._report_problem("transactions", self._loads.hidden)
        if self._loads.missing_data:
            self._silence.note_outage()
        if self._publisher.in_force is None or self._publisher.intent is None:
            raise NotReadyError("plan: no plan is in force yet")
        wanted = self._publisher.intent.plan
        names = [name for name in self._scaler.requested if name in wanted.replicas]
        self._learn(names)
        assignment = self._owners(len(partitions)) if wanted.assignment is None else wanted.assignment
        late = self._reports.take_late_events()  # after the last step that may raise
        replicas = tuple(self._observed(name, late.pop(name, None)) for name in names)
        return GroupObservation(
            at_s=at_s,
            partitions=partitions,
            replicas=replicas,
            assignment=assignment,
            service_rate=self._service_rates.service_rate,
            rebalance_time_s=self.rebalance_time_s,
            overhead_s=self._settings.overhead_s,
            startup_s=self._settings.startup_s,
            commit_age_s=self._settings.commit_age_s,
            stops_all=self.stops_all,
            recent=self._loads.recent,
            late_of_removed_replicas=late,
        )

    def _observed(self, name: str, late: int | None) -> Replica:
        ready, silent_s = self._scaler.is_ready(name), self._silence.ages_s.get(name, 0.0)
        rate, starting_s = self._service_rates.own_rate(name), self._scaler.starting_s(name)
        return Replica(name, ready, rate, silent_s, late if ready or late else 0, starting_s)

    def arrivals(self) -> RecentArrivals | None:
        """Return the arrivals since the last observation; None if no slot has ended since the last call."""
        return self._loads.arrivals()

    def apply(self, decision: Decision) -> None:
        """Replace the intended plan, start missing replicas, and take every step that is possible now."""
        self._publisher.want(decision.plan, decision.action.value, decision.reason)
        self._scaler.request(decision.plan.replicas)
        self.advance()

    def advance(self) -> None:
        """Take the due steps: replicas, then plan, then releases. Called every 20 ms. Only calls to Kafka may wait.

        Raises FencedError when another autoscaler has taken over.
        """
        self._loads.sample(self._clock())
        self._scaler.reconcile(self._reports.poll(), reports_unavailable=self._silence.is_of_most)
        self._silence.observe()
        planned = (rebalance for rebalance in self._reports.take_rebalances() if rebalance.kind is RebalanceKind.PLAN)
        self._rebalance_time.observe(rebalance.pause_us / 1e6 for rebalance in planned)
        self._report_problem("launcher", self._scaler.launcher.problem)
        self._silence.replace_hung(self._publisher.in_force)
        if self._publisher.intent is None:
            return
        self._place_new_partitions(self._publisher.intent.plan)
        self._publisher.publish_if_due(self._reports.recent(), stops_all=self.stops_all)
        named = () if self._publisher.in_force is None else self._publisher.in_force.replicas
        for name in self._scaler.requested:
            if name not in named and name not in self._publisher.intent.plan.replicas:
                self._scaler.release(name)

    def withdraw(self) -> bool:
        """Give up what is not in force. Return whether the replicas in force are ready, and no other runs."""
        found, scaler = self._publisher.in_force, self._scaler
        names = found.replicas if found else ()
        in_force = found and Intent(Plan(names, found.assignment), ACTION_REPAIR, found.reason, was_in_force=True)
        self._publisher.intent = in_force or None
        for name in scaler.requested:
            if name not in names:
                scaler.release(name)
        return {*scaler.instances} == {*scaler.ready} == {*names} and not scaler.evictions

    def status(self) -> GroupStatus:
        """Return the current numbers without a request to Kafka."""
        names = self._scaler.requested
        return GroupStatus(
            requested_replicas=len(names),
            ready_replicas=len(self._scaler.ready),
            planned_replicas=0 if self._publisher.intent is None else self._publisher.intent.plan.count,
            epoch=0 if self._publisher.in_force is None else self._publisher.in_force.epoch,
            service_rate=self._service_rates.service_rate,
        )

    def _place_new_partitions(self, wanted: Plan) -> None:
        now = self._loads.partitions
        if wanted.assignment is not None and len(wanted.assignment) < now:
            owners = dict(wanted.assignment)
            spread(owners, range(len(owners), now), wanted.replicas, rates=self._loads.rates())
            grew = (
                f"the topic grew from {len(wanted.assignment)} to {now} partitions; the least loaded replicas get them"
            )
            self._publisher.want(Plan(wanted.replicas, owners), ACTION_REPAIR, grew)

    def _learn(self, replicas: Sequence[str]) -> None:
        """Learn service rates from reports. A replica that restarts under its old name is learned from scratch."""
        self._service_rates.keep(replicas)
        reports = [one for name in replicas if self._scaler.is_ready(name) and (one := self._reports.newest(name))]
        self._latencies = {report.replica: report.latencies for report in reports if report.latencies}
        for report in reports:
            if report.replica not in self._silence.ages_s:
                work = WorkCounters(report.replica, report.incarnation, report.processed, report.busy_us)
                self._service_rates.observe(work)
        self._learned_rates = {name: round(self._service_rates.estimate(name).value, 1) for name in replicas}

    def _owners(self, partitions: int) -> Mapping[int, str]:
        """Return the owners that members report, for plans without an assignment."""
        members = [report for name in self._scaler.ready if (report := self._reports.newest(name)) is not None]
        owners: dict[int, str] = {}
        for report in sorted(members, key=lambda report: report.generation):  # the newest generation wins
            if report.state is ReplicaState.MEMBER:
                owners |= {partition: report.replica for partition in report.partitions if partition < partitions}
        unowned = [partition for partition in range(partitions) if partition not in owners]
        if unowned and not self._settings.runtime and not self._silence.ages_s:
            raise NotReadyError(f"owner of partition {unowned[0]}: no replica reports it")
        return owners
