"""A whole run: a workload through the controller, its policy and a simulated group, to the last event.

The world is turned step by step: the engine up to each timed action, then the action.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import merge
from math import ceil
from operator import attrgetter
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.controller import Controller
from autoscaler.model import Decision, GroupObservation
from autoscaler.ports import NotReadyError, Policy, PolicyWrapper
from autoscaler.records import decision_record, not_ready_record
from autoscaler.simulator.arrivals import Agenda, Arrivals, Feed, Workload
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.engine import Engine
from autoscaler.simulator.group import SimulatedGroup
from autoscaler.simulator.observation import OffsetObserver
from autoscaler.simulator.outcome import Events, Outcomes, repeated
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.rebalance import RebalanceModel, ShareGroup, make_rebalance_model
from autoscaler.simulator.settings import Change, SimulationSettings
from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged, TickRecord
from contracts.rebalance_protocol import RebalanceProtocol

TICKS_TO_RECOVER: Final = 1000
"""A policy that does not replace a replica which died at the very end within so many further ticks never will."""


class Simulation:
    """Everything but the controller. Time is that of the engine; under share a pool takes its place.

    keep: off, only latencies are kept, and no record of plans and replicas.
    """

    def __init__(self, workload: Workload, settings: SimulationSettings, *, keep: bool = True) -> None:
        service = ServiceTimes(settings.service, settings.seed)
        self.outcomes = Outcomes(keep=keep)
        self.agenda = Agenda()
        target_us = round(settings.latency_target_s * 1e6)
        self.engine: Engine | Pool
        delivery: RebalanceModel
        if settings.delivery.delivery is RebalanceProtocol.SHARE:
            pool = Pool(workload.partitions, service, target_us=target_us)
            self.engine, delivery = pool, ShareGroup(pool, self.agenda)
        else:
            engine = Engine(workload.partitions, service, poll_events=settings.poll_events, target_us=target_us)
            self.engine = engine
            delivery = make_rebalance_model(settings.delivery, engine, self.agenda, settings.seed)
        look_back_us = round((settings.decision_interval_s + settings.observation_delay_s) * 1e6)
        self._feed = Feed(workload, self._take_in, look_back_us=look_back_us)
        self._observer = OffsetObserver(self.engine, self._feed.slots, settings)
        self.group = SimulatedGroup(
            self.engine, self.agenda, delivery, self._observer, settings, partitions=workload.partitions, keep=keep
        )
        self._delay_us = round(settings.observation_delay_s * 1e6)
        self._ended_us = round(workload.duration_s * 1e6)

    def advance(self, until_us: int) -> None:
        """Let everything happen that is due at or before `until_us`, and serve what starts before."""
        while (due_us := self.agenda.next_us()) is not None and due_us <= until_us:
            self._serve(due_us)
            self.agenda.pop()()
            self.group.release()
        self._serve(until_us)

    def finish_changes(self) -> None:
        """Go to the end of the workload, and on until everything has happened that has been set going."""
        self.advance(max(self.engine.now_us, self._ended_us))
        while (due_us := self.agenda.next_us()) is not None:
            self.advance(due_us)

    def schedule_observation(self, tick_us: int, *, first: bool = False) -> None:
        """Read the offsets in time for a tick that sees them late. first: it comes before those looked for already."""
        look_us = tick_us - self._delay_us
        self._observer.schedule_sample(look_us, self.agenda, first=first)
        if self._delay_us:
            self.agenda.at(max(self.engine.now_us, look_us), self._observer.sample)

    def drain(self) -> int:
        """Serve all that is left; return when the last event was finished, µs."""
        drained_us = self.engine.drain()
        self.outcomes.add(self.engine.take())
        return drained_us

    def _serve(self, until_us: int) -> None:
        self._feed.until(until_us)
        if until_us > self.engine.now_us:
            self.engine.advance(until_us)

    def _take_in(self, arrivals: Arrivals) -> None:
        self.outcomes.add(self.engine.take())
        self.engine.feed(arrivals)
        self.outcomes.fed(arrivals)


class SimulatedJournal:
    """Implements autoscaler.ports.Journal: values are kept as they are, records are made when somebody reads them.

    keep: off, and ticks are forgotten (for runs with millions of loads).
    """

    def __init__(self, group: SimulatedGroup, policy: str, *, keep: bool = True) -> None:
        self._group = group
        self._policy = policy
        self._keep = keep
        self._ticks: list[tuple[int, Callable[..., TickRecord]]] = []
        """When, and what makes the record."""
        self._number = 0

    def record(self, observation: GroupObservation, decision: Decision) -> None:
        """Record one decision with what it was made from."""
        self._take(partial(decision_record, observation, decision, epoch=self._group.epoch))

    def record_not_ready(self, missing: NotReadyError) -> None:
        """Record that nothing was decided because something was unknown."""
        self._take(partial(not_ready_record, missing.missing, self._group.status()))

    def ticks(self, started_us: int) -> Iterator[TickRecord]:
        """Yield a record for each tick that was kept. started_us: what second 0 of the run is."""
        for at_us, record in self._ticks:
            yield record(at_us=started_us + at_us)

    def _take(self, record: Callable[..., TickRecord]) -> None:
        self._number += 1
        if self._keep:
            self._ticks.append((self._group.now_us, partial(record, tick=self._number, policy=self._policy)))


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What came out. Times in µs since the start of the run; events by number, replicas by number."""

    policy: str
    partitions: int
    duration_s: float
    events: Events
    """Empty where only latencies are kept."""
    latency_us: NDArray[np.int64]
    """From the intended time to the first completion."""
    replica_names: tuple[str, ...]
    changes: tuple[Change, ...]
    requested: tuple[tuple[int, int], ...]
    """(µs, replicas paid for from then on): what `report.measures.replica_minutes` reads."""
    drained_us: int
    repeated: NDArray[np.int64]
    """Numbers of events that were served again after they had been finished; each as often as that happened."""
    policy_s: float
    """Spent in Policy.decide, by the caller's clock; 0 without one."""
    plans: tuple[PlanWritten, ...]
    replica_changes: tuple[ReplicaChanged, ...]
    _journal: SimulatedJournal | None = field(repr=False)

    @property
    def duplicates(self) -> int:
        """How often an event was served again."""
        return len(self.repeated)

    def entries(self, started_us: int = 0) -> Iterator[JournalEntry]:
        """Yield the journal in order of time, as a live run writes it; records are made here, not during the run.

        started_us: epoch µs of second 0. Raises ValueError for a run whose events were not kept.
        """
        if self._journal is None:
            raise ValueError("this run kept latencies only: it has no journal")
        own: list[PlanWritten | ReplicaChanged] = [*self.plans, *self.replica_changes]
        shifted = [msgspec.structs.replace(entry, at_us=started_us + entry.at_us) for entry in own]
        shifted.sort(key=attrgetter("at_us"))
        yield from merge(shifted, self._journal.ticks(started_us), key=attrgetter("at_us"))


def simulate(
    workload: Workload,
    policy: Policy,
    settings: SimulationSettings,
    *,
    keep_events: bool = True,
    clock: Callable[[], float] | None = None,
) -> Run:
    """Run `workload` under `policy` until its last event is finished.

    keep_events: off, and only latencies are kept, in 4 bytes each, and what the policy changed: no journal.
    clock: seconds; times the policy.
    Raises ValueError for settings or a workload that make no sense, and for plans that contradict themselves.
    """
    failures = tuple(failure for failure in settings.failures if failure.at_s < workload.duration_s)
    settings = replace(settings, failures=failures)
    may_repeat = bool(failures) and settings.poll_events > 1
    simulation = Simulation(workload, settings, keep=keep_events or may_repeat)
    timed = _TimedPolicy(policy, clock)
    journal = SimulatedJournal(simulation.group, policy.name, keep=keep_events)
    controller = Controller(simulation.group, timed, journal)
    ticks_us = tick_times_us(settings, workload.duration_s)
    for tick_us in ticks_us:
        simulation.schedule_observation(tick_us)
    for tick_us in ticks_us:
        if controller.decides_between_ticks:
            _watch(simulation, controller, settings, tick_us)
        simulation.advance(tick_us)
        controller.tick()
    simulation.finish_changes()
    _replace_the_dead(simulation, controller, settings)
    drained_us = simulation.drain()
    events = simulation.outcomes.events()
    group = simulation.group
    return Run(
        policy=policy.name,
        partitions=workload.partitions,
        duration_s=workload.duration_s,
        events=events,
        latency_us=simulation.outcomes.latency_us(),
        replica_names=tuple(group.members.names),
        changes=tuple(group.changes),
        requested=tuple(group.members.requested),
        drained_us=drained_us,
        repeated=repeated(events, group.kills if may_repeat else []),
        policy_s=timed.spent_s,
        plans=tuple(group.plans),
        replica_changes=tuple(group.members.changes),
        _journal=journal if keep_events else None,
    )


def _watch(simulation: Simulation, controller: Controller, settings: SimulationSettings, until_us: int) -> None:
    slot_us = round(settings.slot_s * 1e6)
    for at_us in range(simulation.engine.now_us + slot_us, until_us - slot_us // 2, slot_us):
        simulation.advance(at_us)
        if controller.urgent():
            simulation.schedule_observation(at_us, first=True)
            simulation.advance(at_us)
            controller.tick()


def tick_times_us(settings: SimulationSettings, duration_s: float) -> list[int]:
    """Return ticks at i·interval + offset for i = 0, 1, … below `duration_s`."""
    count = max(0, ceil((duration_s - settings.tick_offset_s) / settings.decision_interval_s) + 1)
    ticks = (round((i * settings.decision_interval_s + settings.tick_offset_s) * 1e6) for i in range(count))
    return [at_us for at_us in ticks if at_us < duration_s * 1e6]


def _replace_the_dead(simulation: Simulation, controller: Controller, settings: SimulationSettings) -> None:
    """Where the last replica died near the end, go on deciding until another one serves what is left.

    Raises ValueError if the policy never asks for one.
    """
    for _ in range(TICKS_TO_RECOVER):
        if not simulation.group.unserved:
            return
        at_us = simulation.engine.now_us + round(settings.decision_interval_s * 1e6)
        simulation.schedule_observation(at_us)
        simulation.advance(at_us)
        controller.tick()
        simulation.finish_changes()
    raise ValueError("all replicas died and the policy asks for no other: what is left cannot be served")


class _TimedPolicy(PolicyWrapper):
    """A policy, and how long it thinks."""

    def __init__(self, policy: Policy, clock: Callable[[], float] | None) -> None:
        super().__init__(policy)
        self._clock = clock
        self.spent_s = 0.0

    def decide(self, observation: GroupObservation) -> Decision:
        if self._clock is None:
            return self.policy.decide(observation)
        began_s = self._clock()
        decision = self.policy.decide(observation)
        self.spent_s += self._clock() - began_s
        return decision
