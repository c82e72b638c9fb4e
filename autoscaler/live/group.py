"""The live side of the ConsumerGroup port: observe through Kafka, act through the plan log and the scaler."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from autoscaler.estimation.service_rates import ServiceRates, WorkCounters
from autoscaler.live.loads import LoadReader
from autoscaler.live.processes import ProcessScaler
from autoscaler.live.progress_reader import ProgressReader
from autoscaler.live.publisher import REPAIR, Intent, Publisher, grown, round_robin
from autoscaler.live.rebalances import Rebalances
from autoscaler.model import Decision, GroupObservation, Plan, Replica
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus
from contracts.clock import steady_s
from contracts.plan import PlanRecord
from contracts.progress import ReplicaState

HUNG_AFTER_S: Final = 15.0
"""A replica that has not reported for so long, while the brokers answered all the time, is taken for hung and killed:
the group has long given its partitions away (session 6 s), and without its report nothing can be decided."""


class LiveGroup:
    """A consumer group on Kafka whose replicas are processes. Implements autoscaler.ports.ConsumerGroup.

    places_itself: the group obeys no plan but for the count; who owns what is known as far as its members report it.
    """

    def __init__(
        self,
        *,
        loads: LoadReader,
        reports: ProgressReader,
        publisher: Publisher,
        scaler: ProcessScaler,
        service_rates: ServiceRates,
        rebalances: Rebalances,
        places_itself: bool = False,
        overhead_s: float = 0.0,
        startup_s: float = 0.0,
        commit_age_s: float = 0.0,
        clock: Callable[[], float] = steady_s,
    ) -> None:
        self._loads = loads
        self._reports = reports
        self._publisher = publisher
        self._scaler = scaler
        self._service_rates = service_rates
        self._rebalances = rebalances
        self._places_itself = places_itself
        self._overhead_s = overhead_s
        self._startup_s = startup_s
        self._commit_age_s = commit_age_s
        self._clock = clock
        self._blind_s = clock()
        """When the brokers last did not answer."""

    @property
    def in_force(self) -> PlanRecord | None:
        """The newest plan on the plan topic."""
        return self._publisher.in_force

    @property
    def intent(self) -> Intent | None:
        """What the group is on its way to; equal to the plan in force once it has got there."""
        return self._publisher.intent

    @property
    def rebalance_time_s(self) -> float:
        """t_r of the group as it is planned now, seconds."""
        return self._rebalances.rebalance_time_s(*self._typical_round())

    def rebalance_figures(self) -> dict[str, float | int | None]:
        """Return t_r as it is planned for and as it was learned, in seconds, and how many rounds were seen."""
        learned = self._rebalances.learned(*self._typical_round())
        return {
            "planned_for_s": self.rebalance_time_s,
            "learned_s": None if learned is None else learned.value_s,
            "rounds_seen": self._rebalances.rounds,
        }

    def _typical_round(self) -> tuple[int, int]:
        """Members, and partitions that move when one replica comes or goes: a fair share."""
        members = max(1, 0 if self.intent is None else self.intent.plan.count)
        return members, -(-self._loads.partitions // members)

    def start(self, initial: tuple[str, ...]) -> None:
        """Take over: adopt what runs, keep the plan in force; without any, make one for the `initial` replicas."""
        self._scaler.adopt(self._reports.poll())
        plan, reason = self._first_plan(initial, self._loads.count())
        if self._places_itself:
            plan = Plan(plan.replicas, None)
        self._publisher.want(plan, "start", reason)
        self._scaler.request(plan.replicas)
        self.advance()

    def _first_plan(self, initial: tuple[str, ...], partitions: int) -> tuple[Plan, str]:
        found = self.in_force
        if found is None or not found.replicas:
            return round_robin(initial, partitions), "first plan: nothing is known yet"
        kept = Plan(found.replicas, found.assignment)
        planned = partitions if found.assignment is None else len(found.assignment)
        if planned == partitions:
            return kept, f"plan {found.epoch} stays in force"
        reason = f"plan {found.epoch} was made for {planned} partitions, now {partitions}"
        return grown(kept, partitions, {}) if planned < partitions else round_robin(found.replicas, partitions), reason

    def observe(self) -> GroupObservation:
        """Read offsets and reports. Raises NotReadyError naming the number that is unknown or stale."""
        self._reports.poll()
        try:
            at_s, partitions = self._loads.read()
        except NotReadyError:
            self._blind_s = self._clock()
            raise
        if self.in_force is None or self.intent is None:
            raise NotReadyError("plan: none is in force yet")
        wanted = self.intent.plan
        names = [name for name in self._scaler.requested if name in wanted.replicas]
        self._learn(names)
        replicas = tuple(Replica(name, self._scaler.ready(name), self._service_rates.own(name)) for name in names)
        return GroupObservation(
            at_s=at_s,
            partitions=partitions,
            replicas=replicas,
            assignment=self._owners(len(partitions)) if wanted.assignment is None else wanted.assignment,
            service_rate=self._service_rates.service_rate,
            rebalance_time_s=self.rebalance_time_s,
            overhead_s=self._overhead_s,
            startup_s=self._startup_s,
            commit_age_s=self._commit_age_s,
            recent=self._loads.recent(),
        )

    def apply(self, decision: Decision) -> None:
        """Replace what is wanted, start what is missing, and go as far as is possible at once."""
        self._publisher.want(decision.plan, decision.action.value, decision.reason)
        self._scaler.request(decision.plan.replicas)
        self.advance()

    def advance(self) -> None:
        """Take every step that is due now: processes, then the plan, then releases. Called often, waits for nobody.

        Raises FencedError when another controller has taken over.
        """
        self._loads.sample(self._clock())
        self._scaler.reconcile(self._reports.poll())
        self._rebalances.observe(self._reports.take_rounds())
        self._kill_hung()
        if self.intent is None:
            return
        self._place_new_partitions(self.intent.plan)
        self._publisher.publish_if_due(self._reports.highest_epoch(), self._reports.assigned_epochs())
        named = () if self.in_force is None else self.in_force.replicas
        for name in self._scaler.requested:
            if name not in named and name not in self.intent.plan.replicas:
                self._scaler.release(name)

    def status(self) -> GroupStatus:
        """Return what is known without asking anybody."""
        names = self._scaler.requested
        return GroupStatus(
            requested_replicas=len(names),
            ready_replicas=sum(self._scaler.ready(name) for name in names),
            planned_replicas=0 if self.intent is None else self.intent.plan.count,
            epoch=0 if self.in_force is None else self.in_force.epoch,
            service_rate=self._service_rates.service_rate,
        )

    def _place_new_partitions(self, wanted: Plan) -> None:
        """Where the topic has grown, give the new partitions owners at once; the policy may then think better of it."""
        if wanted.assignment is None or len(wanted.assignment) >= self._loads.partitions:
            return
        reason = (
            f"the topic grew from {len(wanted.assignment)} to {self._loads.partitions} partitions; "
            "the new ones go to the least loaded"
        )
        self._publisher.want(grown(wanted, self._loads.partitions, self._loads.rates()), REPAIR, reason)

    def _kill_hung(self) -> None:
        if self._clock() - self._blind_s < HUNG_AFTER_S:
            return
        for name in self._scaler.requested:
            age_s = self._reports.age_s(name)
            if self._scaler.ready(name) and age_s > HUNG_AFTER_S:
                self._scaler.kill(name, f"hung: its last report is {age_s:.0f} s old")

    def _learn(self, replicas: Sequence[str]) -> None:
        """Learn μ from what those that are ready have served. Who comes back under a name of old is another one."""
        self._service_rates.keep(replicas)
        for report in [self._reports.fresh(name) for name in replicas if self._scaler.ready(name)]:
            self._service_rates.observe(
                WorkCounters(report.replica, report.incarnation, report.processed, report.busy_us)
            )

    def _owners(self, partitions: int) -> Mapping[int, str]:
        """Who owns what by the members' own reports, for plans that leave that to the group."""
        members = [self._reports.fresh(name) for name in self._scaler.requested if self._scaler.ready(name)]
        owners: dict[int, str] = {}
        for report in sorted(members, key=lambda report: report.generation):  # the later generation has the last word
            if report.state is ReplicaState.MEMBER:
                owners |= dict.fromkeys(report.partitions, report.replica)
        unowned = [partition for partition in range(partitions) if partition not in owners]
        if unowned and not self._places_itself:
            raise NotReadyError(f"owner of partition {unowned[0]}: no replica reports it")
        return owners
