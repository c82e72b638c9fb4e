"""Simulated implementation of the ConsumerGroup port."""

from functools import partial
from typing import Final

from autoscaler.model import Decision, GroupObservation, Plan, RecentArrivals, Replica
from autoscaler.packing.owners import count_moves
from autoscaler.policies.settings import REPLICA_PREFIX
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus
from autoscaler.simulator.arrivals import Agenda
from autoscaler.simulator.chance import Cause, chance_of, startup_time_s
from autoscaler.simulator.engine import Engine
from autoscaler.simulator.members import Member, Members, first_placement, follow_plan, place_partitions
from autoscaler.simulator.observation import LearnedRates, OffsetObserver
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.rebalance import RebalanceModel
from autoscaler.simulator.settings import Change, Failure, SimulationSettings
from contracts.journal import PlanWritten, ReplicaChange

REPAIR: Final = "repair"
"""Action of a plan for which no policy decided."""


class SimulatedGroup:
    """Implements autoscaler.ports.ConsumerGroup. The simulation calls `release` after each timed action."""

    def __init__(
        self,
        engine: Engine | Pool,
        agenda: Agenda,
        rebalance: RebalanceModel,
        observer: OffsetObserver,
        settings: SimulationSettings,
        *,
        partitions: int,
        keep: bool = True,
    ) -> None:
        """Create the group. keep: whether plans are recorded."""
        self._keep, self._engine, self._agenda, self._rebalance = keep, engine, agenda, rebalance
        self._observer, self._settings = observer, settings
        self._loss = chance_of(Cause.LOSS, settings.seed)
        self._rates = LearnedRates(settings.service, partitions, 1 + settings.service_rate_error)
        self._dying: frozenset[int] = frozenset()
        self._dead: frozenset[int] = frozenset()
        self.members = Members()
        self.epoch = 0
        self.plans: list[PlanWritten] = []
        self.changes: list[Change] = []
        names = tuple(f"{REPLICA_PREFIX}-{ordinal}" for ordinal in range(settings.initial_replicas))
        self._plan = Plan(names, None)
        first = [self._request(name) for name in names]
        for member in first:
            self.members.make_ready(member, 0)
        self._placement = first_placement(partitions, first)
        self._rebalance.begin(self._placement.now, frozenset(member.number for member in first))
        self._write("start", "first plan: nothing is known yet", partitions)
        self._present: set[int] = set()
        """Numbers of the replicas at the last observation."""
        self.release()
        for failure in settings.failures:
            agenda.at(round(failure.at_s * 1e6), partial(self._fail, failure))

    @property
    def now_us(self) -> int:
        """µs since the start of the run."""
        return self._engine.now_us

    def status(self) -> GroupStatus:
        """Return the numbers that are known without reading offsets."""
        planned = self.members.planned
        return GroupStatus(
            requested_replicas=len(planned),
            ready_replicas=sum(member.ready for member in planned),
            planned_replicas=len(planned),
            epoch=self.epoch,
            service_rate=self._rates.group,
        )

    def observe(self) -> GroupObservation:
        """Observe offsets and members. Raises NotReadyError at the configured share of ticks (observation_loss)."""
        offsets = self._observer.observe()
        late = dict(enumerate(offsets.late.tolist()))
        if self._settings.observation_loss and self._loss.random() < self._settings.observation_loss:
            raise NotReadyError("offsets: the brokers did not answer")
        if not self._rates.alike:
            planned, at_s = self.members.planned, self._engine.now_us / 1e6
            committed, busy_us = self._engine.committed(), self._engine.busy_us()
            self._rates.observe(planned, self._placement.now, committed, at_s, busy_us)
        return GroupObservation(
            at_s=self._engine.now_us / 1e6,
            partitions=offsets.loads,
            replicas=tuple(map(partial(self._reporting, late), self.members.planned)),
            late_of_removed_replicas=self._late_of_removed(late),
            assignment=self._placement.aim,
            service_rate=self._rates.group,
            rebalance_time_s=self._settings.policy_rebalance_time_s,
            startup_s=self._settings.policy_startup_s,
            commit_age_s=self._settings.commit_age_s,
            stops_all=self._settings.rebalance.stops_all,
            recent=offsets.recent,
        )

    def _reporting(self, late: dict[int, int], member: Member) -> Replica:
        reported, starting_s = late.get(member.number, 0), member.starting_s(self._engine.now_us)
        return Replica(member.name, member.ready, self._rates.of(member), 0.0, reported, starting_s)

    def _late_of_removed(self, late: dict[int, int]) -> dict[str, int]:
        present, self._present = self._present, {m.number for m in (*self.members.planned, *self.members.leaving)}
        reporting = present.union(number for number, count in late.items() if count)
        removed = sorted(reporting.difference(member.number for member in self.members.planned))
        return {self.members.names[number]: late.get(number, 0) for number in removed}

    def arrivals(self) -> RecentArrivals | None:
        """Return the arrivals since the last observation; None if observations are delayed."""
        return None if self._settings.observation_delay_s else self._observer.arrivals()

    def apply(self, decision: Decision) -> None:
        """Request new replicas, and start to carry out the plan. Raises ValueError if the plan contradicts itself."""
        before, self._plan = self._placement, decision.plan
        self._placement = follow_plan(before, decision.plan)
        self.members.plan(decision.plan.replicas)
        starting: dict[int, list[Member]] = {}
        new = [name for name in decision.plan.replicas if self.members.get(name) is None]
        others = len(new) - 1 + sum(not member.ready for member in self.members.planned)
        for name in new:
            seconds = startup_time_s(self._settings.startup_s, self._settings.seed, len(self.members.names))
            seconds += others * self._settings.startup_each_s
            starting.setdefault(round(seconds * 1e6), []).append(self._request(name))
        for after_us, members in starting.items():
            if after_us:
                self._agenda.at(self._engine.now_us + after_us, partial(self._become_ready, members))
            for member in members if not after_us else ():
                self.members.make_ready(member, self._engine.now_us)
        self._place()
        count = count_moves(before.aim, self._placement.aim)
        self.changes.append(Change(self._engine.now_us / 1e6, decision.action, decision.plan.count, count))
        self._write(decision.action.value, decision.reason, count)
        self.release()

    def release(self) -> None:
        """Remove every leaving replica that has finished its work."""
        now_us = self._engine.now_us
        for member in [*self.members.leaving]:
            until_us = self._rebalance.released_us(member.number) if member.ready else now_us
            if until_us is None:
                continue
            if until_us <= now_us:
                self.members.remove(member, now_us, ReplicaChange.LEFT)
            else:
                self._agenda.at(until_us, lambda: None)  # `release` is called again at that time

    @property
    def unserved(self) -> bool:
        """Whether a dead replica owns some partition."""
        return not self._dead.isdisjoint(self._placement.now)

    def _request(self, name: str) -> Member:
        return self.members.request(name, self._engine.add_replica(), self._engine.now_us)

    def _become_ready(self, starting: list[Member]) -> None:
        awaited = [member for member in starting if member in self.members]
        for member in awaited:
            self.members.make_ready(member, self._engine.now_us)
        if awaited:
            self._place_again()

    def _place_again(self) -> None:
        """Place again under the same plan. Moves by the group's assignor count for the decision that caused them."""
        before = self._placement
        self._place()
        if self._plan.assignment is None and self.changes and (more := count_moves(before.aim, self._placement.aim)):
            last = self.changes[-1]
            self.changes[-1] = Change(last.at_s, last.action, last.replicas, last.moved + more)

    def _place(self) -> None:
        members = self.members.planned
        self._placement = place_partitions(
            self._placement, members, counted=self._plan.assignment is None, dying=self._dying, dead=self._dead
        )
        ready = [member.number for member in members if member.ready]
        self._rebalance.carry_out(self._placement.now, frozenset(ready).union(self._placement.now) - self._dead)

    def _fail(self, failure: Failure) -> None:
        """Kill the ready replica with most partitions, on ties the oldest."""
        alive = [member for member in self.members.planned + self.members.leaving if member.ready]
        alive = [member for member in alive if member.number not in self._dying]
        if not alive:
            return
        victim = max(alive, key=lambda member: self._placement.now.count(member.number))
        now_us = self._engine.now_us
        after_s = self._settings.eviction_s if failure.known else self._settings.session_s
        evicted_us = now_us + round(after_s * 1e6)
        self._engine.kill(victim.number)
        self._dying |= {victim.number}
        self._rebalance.on_death(victim.number, evicted_us)
        if failure.known:
            self._bury(victim)
        self._agenda.at(evicted_us, partial(self._evict, victim))

    def _bury(self, victim: Member) -> None:
        if victim in self.members:
            self.members.remove(victim, self._engine.now_us, ReplicaChange.DIED)
            names = tuple(name for name in self._plan.replicas if name != victim.name)
            self._plan = Plan(names, self._plan.assignment)

    def _evict(self, victim: Member) -> None:
        self._bury(victim)
        self._dying -= {victim.number}
        self._dead |= {victim.number}
        before = self._placement
        self._place()
        moved = count_moves(before.aim, self._placement.aim)
        self._write(REPAIR, f"{victim.name} died: its partitions go to the others", moved)

    def _write(self, action: str, reason: str, count: int) -> None:
        self.epoch += 1
        if not self._keep:
            return
        owners = None if self._plan.assignment is None else dict(self._placement.aim)
        self.plans.append(
            PlanWritten(
                at_us=self._engine.now_us,
                epoch=self.epoch,
                action=action,
                reason=reason,
                replicas=self._plan.replicas,
                assignment=owners,
                moved=count,
            )
        )
