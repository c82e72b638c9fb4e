"""A group that this autoscaler only observes: a fluid model of the replicas that it would run.

The model serves the same arrivals as the real group, which another scaler manages.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import numpy as np

from autoscaler.live.kafka import DEADLINE_S
from autoscaler.live.loads import LoadReader
from autoscaler.live.measurements import CommittedRates, MemberReader
from autoscaler.live.offsets import OffsetReader
from autoscaler.live.plan_log import PlanLog, PlanNotWrittenError, read_plans
from autoscaler.live.problems import Problems, first_few
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import Decision, GroupObservation, PartitionLoad, Plan, RecentArrivals, Replica
from autoscaler.packing.owners import round_robin
from autoscaler.policies.settings import REPLICA_PREFIX
from autoscaler.ports import NotReadyError
from autoscaler.records import EventAges, Floats, GroupStatus
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.metrics import gauge

PROPOSES: Final = "proposes"  # first word of the reason of a proposal

# label `of`: `group` is the real group, `would_be` the model
REPLICAS = gauge("tailpack_shadow_replicas", "replicas", "Replicas of the real group and of the model", "of")
LAG = gauge("tailpack_shadow_lag_seconds", "seconds", "Age of the oldest waiting event", "of")
MINUTES = gauge("tailpack_shadow_replica_minutes", "replica-minutes", "Replica-minutes since the start", "of")
COMPARED = gauge("tailpack_shadow_watched_seconds", "seconds", "Duration of the comparison")
LATE = gauge("tailpack_shadow_late_seconds", "seconds", "Time with the oldest waiting event over the target", "of")


@dataclass(slots=True)
class Account:
    """Cost of the real group or of the model so far. lag_s: age of the oldest waiting event, seconds."""

    replicas: int = 0
    replica_s: float = 0.0
    lag_s: float = 0.0
    late_s: float = 0.0

    def book(self, replicas: int, lag_s: float, passed_s: float, target_s: float) -> None:
        """Set the present replica count and lag, and add their cost for the time that has passed."""
        self.replicas, self.lag_s = replicas, lag_s
        self.replica_s += replicas * passed_s
        self.late_s += passed_s if lag_s > target_s else 0.0


class ObservedGroup:
    """A simulated copy of a group, for decisions that are not carried out. Implements autoscaler.ports.ConsumerGroup.

    A plan comes into force when the start-up time of all its replicas is over. loads: loads of the real group.
    members: members of the real group. proposals: gets the replica count of each plan; None: it is not published.
    """

    leads = False

    def __init__(
        self,
        loads: LoadReader,
        members: MemberReader,
        settings: AutoscalerSettings,
        problems: Problems,
        proposals: PlanLog | None = None,
    ) -> None:
        self._loads, self._members, self._settings = loads, members, settings
        self._problems, self._proposals = problems, proposals
        self.rebalance_time_s = settings.rebalance_time_s
        self._rates = CommittedRates()
        self.plan = self._in_force = Plan((), None)
        """Intended plan, and plan in force. They start with the real replica count once members and rate are known."""
        self._ready_s: dict[str, float] = {}
        self._at_s: float | None = None
        self._began_s = 0.0
        self._ends: Floats = np.zeros(0)
        """End offset of each partition minus its committed offset at the first reading."""
        self._waiting: Floats = np.zeros(0)
        """Lag of each partition in the model, events."""
        self._ages = EventAges()
        self.actual, self.would_be = Account(), Account()

    @classmethod
    def of(
        cls, connection: Connection, settings: AutoscalerSettings, offsets: OffsetReader, problems: Problems,
        *, may_replace: bool = False,
    ) -> "ObservedGroup":  # fmt: skip
        """Return the group with its clients. Raises PlanNotWrittenError if `propose` would stop another autoscaler.

        may_replace: none acts, but its plans are there. Members that follow plans must not get a proposal all the same.
        """
        name, topic = settings.group_in(connection.namespace), settings.topic_in(connection.namespace)
        proposals = None
        if settings.act == "propose":
            found = read_plans(connection, settings, DEADLINE_S).newest
            may_replace = may_replace and (settings.is_foreign or bool(settings.runtime))
            if found is not None and not found.reason.startswith(PROPOSES) and not may_replace:
                why = f"plan {found.epoch} is no proposal, so an autoscaler acts on this group"
                raise PlanNotWrittenError(f"{why}; use act = off, or on")
            proposals = PlanLog(connection, settings)
        return cls(LoadReader(offsets), MemberReader(connection, name, topic), settings, problems, proposals)

    @property
    def compared_s(self) -> float:
        """Duration of the comparison, seconds."""
        return self._at_s - self._began_s if self._at_s is not None and self.plan.count else 0.0

    @property
    def unknown(self) -> str:
        """Waiting times of the real group that are unknown and are not counted; empty: none."""
        causes = [f"partition {number} (without a commit)" for number in sorted(self._loads.without_commit)]
        age = [f"{self.unknown_s:.0f} s of each wait (the age of its commits)"] if self.unknown_s else []
        return first_few([*age, *causes], "; ")

    @property
    def unknown_s(self) -> float:
        """Part of a waiting time of the real group that may only be the age of its last commit, seconds."""
        interval_s, tick_s = median(self._rates.commit_intervals_s), self._settings.decision_interval_s
        return interval_s + tick_s if interval_s > 1.5 * tick_s else 0.0

    def observe(self) -> GroupObservation:
        """Read the real group, let the model serve the new arrivals, and observe it. Raises NotReadyError."""
        at_s, partitions = self._loads.read()
        owned, lags = self._members.read(), np.array([float(load.lag) for load in partitions])
        if len(self._ends) != len(partitions):
            self._ends, self._waiting = lags.copy(), lags.copy()
        passed_s = at_s - (at_s if self._at_s is None else self._at_s)
        arrived = np.array([load.arrival_rate for load in partitions]) * passed_s
        self._ends, self._at_s = self._ends + arrived, at_s
        self._ages.add(at_s, partitions, self._loads.recent)
        if owned is not None and not self._loads.missing_data:
            known = {member: read - self._loads.without_commit for member, read in owned.items()}
            self._rates.observe(at_s, known, self._ends - lags, lags)
        rate = self._settings.member_rate or self._rates.service_rate
        if not owned or rate is None:
            self._waiting = lags  # until both are known, the model equals the real group
            no_members = "members of the group: it has none, or the brokers have not reported them"
            no_rate = "service rate of a member: no member had lag so far; set TAILPACK_MEMBER_RATE"
            raise NotReadyError(no_rate if owned else no_members)
        if not self.plan.count:
            self.plan = Plan(tuple(f"{REPLICA_PREFIX}-{number}" for number in range(len(owned))), None)
            self._ready_s, self._began_s, passed_s = dict.fromkeys(self.plan.replicas, at_s), at_s, 0.0
        self._serve(at_s, passed_s, arrived, rate)
        target_s, waits_s = self._settings.latency_target_s, self._ages.of
        self.actual.book(len(owned), max(waits_s(lags), default=0.0), passed_s, target_s + self.unknown_s)
        self.would_be.book(self.plan.count, max(waits_s(self._waiting), default=0.0), passed_s, target_s)
        return self._observed(at_s, partitions, rate)

    def arrivals(self) -> RecentArrivals | None:
        """Return the arrivals since the last observation; None: no new samples."""
        return self._loads.arrivals()

    def apply(self, decision: Decision) -> None:
        """Set the intended plan. Its new replicas start."""
        assert self._at_s is not None
        self.plan = decision.plan
        known, ready_s = self._ready_s, self._at_s + self._settings.startup_s
        self._ready_s = {name: known.get(name, ready_s) for name in decision.plan.replicas}

    def start(self, _initial: tuple[str, ...]) -> None:
        """Do nothing: the members run already."""

    def advance(self) -> None:
        """Sample the offsets. Called every 20 ms."""
        self._loads.sample(monotonic_s())

    def after_tick(self, metrics: Any) -> None:
        """Publish the count, and show the comparison and its problems. Raises FencedError."""
        self._problems.report("plans", self._propose())
        self._problems.report("members", self._members.problem)
        self._problems.report("transactions", self._loads.hidden)
        for of, account in (("group", self.actual), ("would_be", self.would_be)):
            metrics[REPLICAS].labels(of).set(account.replicas)
            metrics[LAG].labels(of).set(account.lag_s)
            metrics[MINUTES].labels(of).set(account.replica_s / 60)
            metrics[LATE].labels(of).set(account.late_s)
        metrics[COMPARED].set(self.compared_s)

    def _propose(self) -> str:
        """Write the wanted replica count if it has changed. Return why that failed; the next tick tries again."""
        log, count = self._proposals, self.plan.count
        if log is None or not count or (log.newest is not None and log.newest.count == count):
            return ""
        try:
            log.write(self.plan.replicas, None, f"{PROPOSES} {count} replicas", wanted=count)
        except PlanNotWrittenError as failed:
            return str(failed)
        return ""

    def page(self) -> dict[str, Any]:
        """Return the data of the page about the plan."""
        owners = self.plan.assignment and dict(self.plan.assignment)
        return {"summary": self.summary(), "would_be": {"replicas": self.plan.replicas, "assignment": owners}}

    def summary(self) -> str:
        """Return the comparison in one line, or why there is none."""
        if not self.compared_s:
            reason = "; ".join(self._problems.current.values()) or "the run was too short"
            return f"{self._members.name}: no comparison: {reason}"
        actual, model, target_s = self.actual, self.would_be, self._settings.latency_target_s
        saved = (actual.replica_s - model.replica_s) / 60
        share = f", {saved / (actual.replica_s / 60):+.0%}" if actual.replica_s else ""
        return (
            f"{self._members.name}, {self.compared_s / 60:.1f} minutes: the group used {actual.replica_s / 60:.1f} "
            f"replica-minutes, the shadow {model.replica_s / 60:.1f} (saved {saved:.1f}{share}); the oldest event "
            f"waited longer than {target_s:g} s for {actual.late_s:.0f} s, in the shadow for {model.late_s:.0f} s"
        ) + (f"; unknown and not counted: {self.unknown}" if self.unknown else "")

    def status(self) -> GroupStatus:
        """Return the current numbers without a request."""
        ready = sum(ready_s <= (self._at_s or 0.0) for ready_s in self._ready_s.values())
        rate = self._settings.member_rate or self._rates.service_rate or 0.0
        return GroupStatus(self.plan.count, ready, self.plan.count, 0, rate)

    def _serve(self, at_s: float, passed_s: float, arrived: Floats, rate: float) -> None:
        """Let each replica of the plan in force serve its partitions, in proportion to their lags."""
        if all(ready_s <= at_s for ready_s in self._ready_s.values()):
            self._in_force = self.plan
        self._waiting += arrived
        owners = self._owners(self._in_force, len(arrived))
        for name in self._in_force.replicas:
            own = [partition for partition, owner in owners.items() if owner == name]
            lag = self._waiting[own].sum()
            if lag > 0:
                self._waiting[own] *= max(0.0, 1 - rate * passed_s / lag)

    def _observed(self, at_s: float, partitions: tuple[PartitionLoad, ...], rate: float) -> GroupObservation:
        loads = zip(partitions, np.ceil(self._waiting - 1e-6).astype(int), strict=True)
        left_s = {name: max(0.0, self._ready_s[name] - at_s) for name in self.plan.replicas}
        start_s = self._settings.startup_s
        return GroupObservation(
            at_s=at_s,
            partitions=tuple(PartitionLoad(load.partition, load.arrival_rate, int(lag)) for load, lag in loads),
            replicas=tuple(Replica(name, not more_s, starting_s=start_s - more_s) for name, more_s in left_s.items()),
            assignment=self._owners(self.plan, len(partitions)),
            service_rate=rate,
            rebalance_time_s=self.rebalance_time_s,
            startup_s=start_s,
            recent=self._loads.recent,
        )

    @staticmethod
    def _owners(plan: Plan, partitions: int) -> Mapping[int, str]:
        if plan.assignment is not None and len(plan.assignment) == partitions:
            return plan.assignment
        return round_robin(plan.replicas, partitions)
