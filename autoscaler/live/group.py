"""The live side of the ConsumerGroup port: observe through Kafka, act through the plan log and the scaler."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from autoscaler.estimation.rebalance_time import RebalanceTime
from autoscaler.estimation.service_rates import ServiceRates, WorkCounters
from autoscaler.live.loads import LoadReader
from autoscaler.live.progress_reader import STALE_AFTER_S, ProgressReader
from autoscaler.live.publisher import REPAIR, Publisher, extend_plan
from autoscaler.live.replicas import ReplicaScaler
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.troubles import LASTING, first_few
from autoscaler.model import Decision, GroupObservation, Plan, RecentArrivals, Replica
from autoscaler.packing.owners import round_robin
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus
from contracts.clock import monotonic_s
from contracts.progress import RebalanceKind, ReplicaState
from contracts.rebalance_protocol import RebalanceProtocol

HUNG_AFTER_S: Final = 15.0
"""A replica that has not reported for so long, while others do and the brokers answer, is taken for hung and replaced:
the group has long given its partitions away (session 6 s)."""


class LiveGroup:
    """A consumer group on Kafka whose replicas are ours to start and stop. Implements autoscaler.ports.ConsumerGroup.

    Under another runtime the group takes only the count from a plan; its members report which partitions they own.
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
        trouble: Callable[..., None],
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._settings, self._loads, self._reports = settings, loads, reports
        self._publisher, self._scaler = publisher, scaler
        self._service_rates, self._rebalance_time = service_rates, rebalance_time
        self._learned_rates: dict[str, float] = {}
        """Replica → μ as learned, events/s; of one that has served nothing, as of the others."""
        self._latencies: dict[str, tuple[int, ...]] = {}
        """Replica → its events by what they took (`Progress.latencies`), of each that counts them."""
        self._trouble, self._clock = trouble, clock
        self._blind_s = clock()
        """When the brokers last did not answer, or not all of them, or too many replicas were silent."""
        self._silent: dict[str, float] = {}
        """Ready replica that has not reported lately → for how long, seconds."""
        self._replacing = ""

    @property
    def rebalance_time_s(self) -> float:
        """t_r that policies plan for, seconds."""
        return self._rebalance_time.planned_s()

    def page(self) -> dict[str, Any]:
        """Return the data of the page about the plan."""
        intent, learned = self._publisher.intent, self._rebalance_time
        planned_s, learned_s = learned.planned_s(), learned.learned_s
        pauses = {"planned_for_s": planned_s, "learned_s": learned_s, "pauses_seen": learned.pause_count}
        wanted = intent and {
            "replicas": intent.plan.replicas,
            "assignment": None if intent.plan.assignment is None else dict(intent.plan.assignment),
            "action": intent.action,
            "reason": intent.reason,
        }
        return {
            "in_force": self._publisher.in_force,
            "wanted": wanted,
            "rebalance_time": pauses,
            "service_rates": self._learned_rates,
            "latencies": self._latencies,
        }

    def start(self, initial: tuple[str, ...]) -> None:
        """Take over: adopt what runs, keep the plan in force; without any, make one for the `initial` replicas."""
        self._scaler.adopt(self._reports.poll())
        plan, reason = self._first_plan(initial, self._loads.count())
        if self._settings.runtime:
            plan = Plan(plan.replicas, None)
        self._publisher.want(plan, "start", reason)
        self._scaler.request(plan.replicas)
        self.advance()

    def _first_plan(self, initial: tuple[str, ...], partitions: int) -> tuple[Plan, str]:
        found = self._publisher.in_force
        if found is None or not found.replicas:
            return Plan(initial, round_robin(initial, partitions)), "first plan: nothing is known yet"
        kept = Plan(found.replicas, found.assignment)
        planned = partitions if found.assignment is None else len(found.assignment)
        if planned == partitions:
            return kept, f"plan {found.epoch} stays in force"
        reason = f"plan {found.epoch} was made for {planned} partitions, now {partitions}"
        if planned < partitions:
            return extend_plan(kept, partitions, {}), reason
        return Plan(found.replicas, round_robin(found.replicas, partitions)), reason

    def observe(self) -> GroupObservation:
        """Read offsets and reports; what is unknown is the worst that may be, and marked.

        Raises NotReadyError where nothing is known to bound it.
        """
        self._reports.poll()
        try:
            at_s, partitions = self._loads.read()
        except NotReadyError as missing:
            self._blind_s = self._clock()
            self._trouble("offsets", f"nothing can be decided: {missing.missing}", after=LASTING)
            raise
        self._trouble("offsets", self._loads.unknown)
        if self._loads.unknown:
            self._blind_s = self._clock()
        if self._publisher.in_force is None or self._publisher.intent is None:
            raise NotReadyError("plan: none is in force yet")
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
            stops_all=not self._settings.runtime and self._settings.rebalance_protocol is RebalanceProtocol.EAGER,
            recent=self._loads.recent,
            late_of_removed_replicas=late,
        )

    def _observed(self, name: str, late: int | None) -> Replica:
        ready, silent_s = self._scaler.ready(name), self._silent.get(name, 0.0)
        return Replica(name, ready, self._service_rates.own_rate(name), silent_s, late if ready or late else 0)

    def arrivals(self) -> RecentArrivals | None:
        """Return the arrivals since the last observation; None where no new ones were sampled."""
        return self._loads.arrivals()

    def apply(self, decision: Decision) -> None:
        """Replace what is wanted, start what is missing, and go as far as is possible at once."""
        self._publisher.want(decision.plan, decision.action.value, decision.reason)
        self._scaler.request(decision.plan.replicas)
        self.advance()

    def advance(self) -> None:
        """Take every step that is due now: processes, then the plan, then releases. Called often; never waits.

        Raises FencedError when another controller has taken over.
        """
        self._loads.sample(self._clock())
        self._scaler.reconcile(self._reports.poll(), unheard=self._too_many_are_silent())
        self._listen()
        planned = (one for one in self._reports.take_rebalances() if one.kind is RebalanceKind.PLAN)
        self._rebalance_time.observe(one.pause_us / 1e6 for one in planned)
        self._trouble("launcher", self._scaler.launcher.trouble)
        self._kill_hung()
        if self._publisher.intent is None:
            return
        self._place_new_partitions(self._publisher.intent.plan)
        self._publisher.publish_if_due(self._reports.highest_epoch(), self._reports.assigned_epochs())
        named = () if self._publisher.in_force is None else self._publisher.in_force.replicas
        for name in self._scaler.requested:
            if name not in named and name not in self._publisher.intent.plan.replicas:
                self._scaler.release(name)

    def status(self) -> GroupStatus:
        """Return what is known without a request."""
        names = self._scaler.requested
        return GroupStatus(
            requested_replicas=len(names),
            ready_replicas=sum(self._scaler.ready(name) for name in names),
            planned_replicas=0 if self._publisher.intent is None else self._publisher.intent.plan.count,
            epoch=0 if self._publisher.in_force is None else self._publisher.in_force.epoch,
            service_rate=self._service_rates.service_rate,
        )

    def _place_new_partitions(self, wanted: Plan) -> None:
        now = self._loads.partitions
        if wanted.assignment is not None and len(wanted.assignment) < now:
            grew = f"the topic grew from {len(wanted.assignment)} to {now} partitions"
            reason = f"{grew}; the new ones go to the least loaded"
            self._publisher.want(extend_plan(wanted, now, self._loads.rates()), REPAIR, reason)

    def _listen(self) -> None:
        """Find the silent replicas, and the problems that the others report, such as a partition cut off."""
        ages = {name: self._reports.age_s(name) for name in self._ready()}
        self._silent = {name: age_s for name, age_s in ages.items() if age_s > STALE_AFTER_S}
        if self._too_many_are_silent():
            self._blind_s = self._clock()
        listed = first_few(self._silent, ", ")
        of_many = "; with so many silent, none is taken for hung" if self._too_many_are_silent() else ""
        self._trouble("reports", f"no report from {listed} of {len(ages)} replicas{of_many}" if listed else "")
        heard = (self._reports.newest(name) for name in self._ready() if name not in self._silent)
        told = [f"{one.replica}: {why}" for one in heard if one is not None for why in one.problems]
        self._trouble("replicas", first_few(told, "; "))

    def _ready(self) -> list[str]:
        return [name for name in self._scaler.requested if self._scaler.ready(name)]

    def _too_many_are_silent(self) -> bool:
        """Return whether the cause is rather on the way to us than in replicas: most are silent, or the only one is."""
        return 2 * len(self._silent) > len(self._ready())

    def _kill_hung(self) -> None:
        """Replace one hung replica at a time, never the last, and none while most are silent or it may be at work."""
        if self._replacing and (self._replacing not in self._scaler.requested or self._replacing in self._ready()):
            self._replacing = ""
        hung = [name for name, age_s in self._silent.items() if age_s > HUNG_AFTER_S]
        alone = len(self._silent) == 1 or 2 * len(self._silent) < len(self._ready())
        blind = self._clock() - self._blind_s < HUNG_AFTER_S
        if not hung or not alone or blind or self._replacing or self._too_many_are_silent():
            return
        name = max(hung, key=lambda one: self._silent[one])
        if not self._serves(name):
            self._replacing = name
            self._scaler.kill(name, f"hung: its last report is {self._silent[name]:.0f} s old")

    def _serves(self, name: str) -> bool:
        """Return whether partitions that `name` alone may own are committed: it works, only its reports are missing."""
        if self._publisher.in_force is None or self._publisher.in_force.assignment is None:
            return False
        others = (self._reports.newest(one) for one in self._ready() if one not in self._silent)
        taken = {partition for report in others if report is not None for partition in report.partitions}
        own = [one for one, owner in self._publisher.in_force.assignment.items() if owner == name and one not in taken]
        return any(self._loads.advanced(partition, HUNG_AFTER_S) for partition in own)

    def _learn(self, replicas: Sequence[str]) -> None:
        """Learn μ from reports. A replica that returns under an old name is another one."""
        self._service_rates.keep(replicas)
        newest = (self._reports.newest(name) for name in replicas if self._scaler.ready(name))
        reports = [report for report in newest if report is not None]
        self._latencies = {report.replica: report.latencies for report in reports if report.latencies}
        for report in reports:
            if report.replica not in self._silent:
                work = WorkCounters(report.replica, report.incarnation, report.processed, report.busy_us)
                self._service_rates.observe(work)
        self._learned_rates = {name: round(self._service_rates.estimate(name).value, 1) for name in replicas}

    def _owners(self, partitions: int) -> Mapping[int, str]:
        """Return the owners as members report them, for plans that leave that to the group."""
        members = [report for name in self._ready() if (report := self._reports.newest(name)) is not None]
        owners: dict[int, str] = {}
        for report in sorted(members, key=lambda report: report.generation):  # the later generation has the last word
            if report.state is ReplicaState.MEMBER:
                owners |= dict.fromkeys(report.partitions, report.replica)
        unowned = [partition for partition in range(partitions) if partition not in owners]
        if unowned and not self._settings.runtime and not self._silent:
            raise NotReadyError(f"owner of partition {unowned[0]}: no replica reports it")
        return owners
