"""A complete run: a workload with a controller, its policy and a simulated group, to the last event.

The simulation advances the engine to the time of each action, then carries out the action.
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

from autoscaler.comparisons import encode
from autoscaler.controller import Controller
from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.ports import NotReadyError, Policy, urgent_of
from autoscaler.records import EventAges, decision_record, not_ready_record
from autoscaler.simulator.arrivals import Agenda, Arrivals, Feed, Workload
from autoscaler.simulator.group import SimulatedGroup
from autoscaler.simulator.observation import OffsetObserver
from autoscaler.simulator.rebalance import make_engine
from autoscaler.simulator.rows import Events, Outcomes
from autoscaler.simulator.settings import Change, SimulationSettings
from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged, TickRecord

TICKS_TO_RECOVER: Final = 1000
"""Ticks after the end within which a policy must replace a replica that died shortly before."""


class Simulation:
    """A simulated group with its engine and timed actions.

    keep: whether events and plans are kept; else only latencies.
    """

    def __init__(self, workload: Workload, settings: SimulationSettings, *, keep: bool = True) -> None:
        self.outcomes = Outcomes(keep=keep)
        self.agenda = Agenda()
        self.engine, rebalance = make_engine(workload.partitions, settings, self.agenda)
        look_back_us = round((settings.decision_interval_s + settings.observation_delay_s) * 1e6)
        self._feed = Feed(workload, self._feed_engine, look_back_us=look_back_us)
        self._observer = OffsetObserver(self.engine, self._feed.slots, settings)
        self.group = SimulatedGroup(
            self.engine, self.agenda, rebalance, self._observer, settings, partitions=workload.partitions, keep=keep
        )
        self._delay_us = round(settings.observation_delay_s * 1e6)
        self._ended_us = round(workload.duration_s * 1e6)

    def advance(self, until_us: int) -> None:
        """Carry out all actions until `until_us`, and serve the events that start before `until_us`."""
        while (due_us := self.agenda.next_us()) is not None and due_us <= until_us:
            self._serve(due_us)
            self.agenda.pop()()
            self.group.release()
        self._serve(until_us)

    def finish_changes(self) -> None:
        """Advance to the end of the workload, and further until no action is scheduled."""
        self.advance(max(self.engine.now_us, self._ended_us))
        while (due_us := self.agenda.next_us()) is not None:
            self.advance(due_us)

    def schedule_observation(self, tick_us: int, *, first: bool = False) -> None:
        """Schedule the delayed observation of a tick. first: the tick precedes all scheduled ticks."""
        sample_us = tick_us - self._delay_us
        self._observer.schedule_sample(sample_us, self.agenda, first=first)
        if self._delay_us:
            self.agenda.at(max(self.engine.now_us, sample_us), self._observer.sample)

    def drain(self) -> int:
        """Serve all remaining events. Return the end of the last event, µs."""
        drained_us = self.engine.drain()
        self.outcomes.add(self.engine.take())
        return drained_us

    def _serve(self, until_us: int) -> None:
        self._feed.feed_until(until_us)
        if until_us > self.engine.now_us:
            self.engine.advance(until_us)

    def _feed_engine(self, arrivals: Arrivals) -> None:
        self.outcomes.add(self.engine.take())
        self.engine.feed(arrivals)


class SimulatedJournal:
    """Implements autoscaler.ports.Journal. It keeps observations and decisions, and creates records when they are read.

    keep: whether ticks are kept (not in runs with millions of loads).
    """

    def __init__(self, group: SimulatedGroup, policy: str, *, keep: bool = True) -> None:
        self._group, self._policy, self._keep = group, policy, keep
        self._ticks: list[tuple[int, Callable[..., TickRecord]]] = []
        """(Time in µs, function that creates the record)."""
        self._number = 0
        self._ages = EventAges()

    def record(self, observation: GroupObservation, decision: Decision) -> None:
        """Record one decision with its observation."""
        if not self._keep:
            return
        comparison = encode(decision.comparison) if decision.action is not Action.NO_CHANGE else ""
        record = partial(decision_record, observation, replace(decision, comparison=None))  # it has arrays of megabytes
        self._add(partial(record, self._ages.observe(observation), epoch=self._group.epoch, comparison=comparison))

    def record_not_ready(self, missing: NotReadyError) -> None:
        """Record that no decision was possible because a value was unknown."""
        self._add(partial(not_ready_record, str(missing), self._group.status()))

    def ticks(self, started_us: int) -> Iterator[TickRecord]:
        """Yield a record for each kept tick. started_us: epoch µs of second 0."""
        for at_us, record in self._ticks:
            yield record(at_us=started_us + at_us)

    def _add(self, record: Callable[..., TickRecord]) -> None:
        self._number += 1
        if self._keep:
            self._ticks.append((self._group.now_us, partial(record, tick=self._number, policy=self._policy)))


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Result of a run. Times are µs since its start. Events and replicas have numbers."""

    policy: str
    partitions: int
    duration_s: float
    events: Events
    """All events of the run; empty if only latencies are kept."""
    latency_us: NDArray[np.int64]
    """Latency of each event, from the intended time to the first completion."""
    replica_names: tuple[str, ...]
    changes: tuple[Change, ...]
    requested: tuple[tuple[int, int], ...]
    """(Time in µs, replicas paid for from then on). `report.measures.replica_minutes` reads it."""
    drained_us: int
    policy_s: float
    """Time spent in Policy.decide, by the caller's clock; 0 without one."""
    plans: tuple[PlanWritten, ...]
    replica_changes: tuple[ReplicaChanged, ...]
    _journal: SimulatedJournal | None = field(repr=False)

    def entries(self, started_us: int = 0) -> Iterator[JournalEntry]:
        """Yield the journal in order of time, as a live run writes it. Records are created here, not during the run.

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
    clock: Callable[[], float] = lambda: 0.0,
) -> Run:
    """Run `workload` with `policy` until its last event is finished.

    keep_events: whether events and the journal are kept; else only latencies (4 bytes each) and `Run.changes`.
    clock: returns seconds, to measure the policy's time.
    Raises ValueError for invalid settings or workloads, and for plans that contradict themselves.
    """
    failures = tuple(failure for failure in settings.failures if failure.at_s < workload.duration_s)
    settings = replace(settings, failures=failures)
    simulation = Simulation(workload, settings, keep=keep_events)
    journal = SimulatedJournal(simulation.group, policy.name, keep=keep_events)
    controller = Controller(simulation.group, policy, journal, clock)
    ticks_us = tick_times_us(settings, workload.duration_s)
    for tick_us in ticks_us:
        simulation.schedule_observation(tick_us)
    for tick_us in ticks_us:
        if urgent_of(policy) is not None:
            _watch(simulation, controller, settings, tick_us)
        simulation.advance(tick_us)
        controller.tick()
    simulation.finish_changes()
    _replace_the_dead(simulation, controller, settings)
    drained_us = simulation.drain()
    group = simulation.group
    return Run(
        policy=policy.name,
        partitions=workload.partitions,
        duration_s=workload.duration_s,
        events=simulation.outcomes.events(),
        latency_us=simulation.outcomes.latency_us(),
        replica_names=tuple(group.members.names),
        changes=tuple(group.changes),
        requested=tuple(group.members.requested),
        drained_us=drained_us,
        policy_s=controller.policy_s,
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
    """Return the times of the ticks, i·interval + offset for i = 0, 1, … below `duration_s`, µs."""
    count = max(0, ceil((duration_s - settings.tick_offset_s) / settings.decision_interval_s) + 1)
    ticks = (round((i * settings.decision_interval_s + settings.tick_offset_s) * 1e6) for i in range(count))
    return [at_us for at_us in ticks if at_us < duration_s * 1e6]


def _replace_the_dead(simulation: Simulation, controller: Controller, settings: SimulationSettings) -> None:
    """Continue the ticks until another replica serves the remaining events, if the last one died near the end.

    Raises ValueError if the policy does not request one within TICKS_TO_RECOVER.
    """
    for _ in range(TICKS_TO_RECOVER):
        if not simulation.group.unserved:
            return
        at_us = simulation.engine.now_us + round(settings.decision_interval_s * 1e6)
        simulation.schedule_observation(at_us)
        simulation.advance(at_us)
        controller.tick()
        simulation.finish_changes()
    raise ValueError(f"all replicas died, and the policy requested none in {TICKS_TO_RECOVER} ticks: events are left")
