"""The input of a simulated run: the settings of the simulator, and events in chunks and as a table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.settings import (
    Failure,
    ObservationSettings,
    RebalanceSettings,
    ServiceSettings,
    SimulationSettings,
)
from bench.scenario import Scenario
from contracts.membership import EventCost
from contracts.rebalance_protocol import RebalanceProtocol
from contracts.settings import shared_fields
from contracts.validation import InvalidSettingsError
from loadgen.faults import HOT_KEY, apply_bursts, read_faults
from loadgen.keys import Keys
from loadgen.schedule import EACH_SECOND, SECOND_US, Bursts, Schedule, Spacing, Split, schedule_chunks
from loadgen.shapes import IntArray
from loadgen.spec import counts_of
from loadgen.trace import EventTrace, Trace, read_trace
from loadgen.workloads import WORKLOADS
from report.measures import bin_capacity

CLAIRVOYANT: Final = "clairvoyant"
NO_KEYS: Final = Keys(0)
CHUNK_EVENTS: Final = 200_000
"""Events that are in memory before their time: a few megabytes, and a hundredth of a second of simulation."""


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """Events of one run, re-created from the seed whenever they are read."""

    counts: IntArray
    """Per second, shape (seconds,), or (seconds, partitions) with Split.TABLE."""
    spacing: Spacing
    split: Split
    partitions: int
    seed: int
    bursts: Bursts = EACH_SECOND
    trace: Callable[[], Iterator[Schedule]] | None = None
    """Yields single events, in order of time, in place of those that follow from the counts."""
    keys: Keys = NO_KEYS
    """Whose the events are, and the partitioner which that goes by."""

    @property
    def duration_s(self) -> int:
        """Seconds in which events are sent."""
        return len(self.counts)

    @property
    def events(self) -> int:
        """Events in all."""
        return int(self.counts.sum())

    def workload(self) -> Workload:
        """Return the events as the simulator takes them."""
        arrivals = (Arrivals(chunk.offset_us, chunk.partition) for chunk in self.chunks())
        return Workload(self.partitions, float(self.duration_s), arrivals)

    def chunks(self) -> Iterator[Schedule]:
        """Yield the events in parts of whole seconds; those of a trace as they are read."""
        return self.keys.assign_keys(self._own_chunks()) if self.keys.change_partitions else self._own_chunks()

    def _own_chunks(self) -> Iterator[Schedule]:
        if self.trace is not None:
            return self.trace()
        chunks = partial(schedule_chunks, self.counts, CHUNK_EVENTS, spacing=self.spacing, split=self.split)
        return chunks(partitions=self.partitions, seed=self.seed, bursts=self.bursts)

    def table(self) -> IntArray:
        """Return the events of each second and partition, shape (seconds, partitions)."""
        in_their_second = self.spacing is not Spacing.BURST or self.bursts == EACH_SECOND
        as_split = in_their_second and not self.keys.change_partitions
        if self.split is Split.TABLE and as_split:
            return self.counts
        if self.split is Split.EVEN and as_split:
            reached = np.concatenate([[0], np.cumsum(self.counts)])[:, None]
            return np.diff((reached - np.arange(self.partitions) + self.partitions - 1) // self.partitions, axis=0)
        table = np.zeros((self.duration_s, self.partitions), dtype=np.int64)
        for chunk in self.chunks():
            begin, end = chunk.offset_us[[0, -1]] // SECOND_US if len(chunk) else (0, 0)
            cell = (chunk.offset_us // SECOND_US - begin) * self.partitions + chunk.partition
            size = (end + 1 - begin) * self.partitions
            table[begin : end + 1] += np.bincount(cell, minlength=size).reshape(-1, self.partitions)
        return table


def sent_by(scenario: Scenario, trace: Trace | EventTrace | None = None) -> Sent:
    """Return what the scenario sends; a trace replaces its rate and duration, as `Scenario.playing` says.

    Raises InvalidSettingsError where its trace is wrong.
    """
    if trace is None and scenario.load.trace:
        trace = read_trace(Path(scenario.load.trace), scenario.payment.partitions)
    if trace is not None:
        scenario = scenario.playing(trace)
    workload = WORKLOADS[scenario.load.workload]
    split, partitions = scenario.simulation.split or scenario.load.split, scenario.payment.partitions
    bursts = Bursts(**shared_fields(scenario.load, Bursts))
    hot = read_faults(scenario.load.faults, HOT_KEY)
    keys = Keys(scenario.seed, scenario.load.key_skew, scenario.load.partitioner, partitions, hot)
    if isinstance(trace, EventTrace):
        events = partial(trace.chunks, keys=keys.have_effect)
        return Sent(trace.counts, scenario.load.spacing, split, partitions, scenario.seed, bursts, events, keys)
    counts = workload.events(scenario.duration_s) if trace is None else counts_of(trace, workload, split)
    counts = apply_bursts(counts, scenario.load.faults)
    return Sent(counts, scenario.load.spacing, split, partitions, scenario.seed, bursts, keys=keys)


def protocol_of(scenario: Scenario) -> RebalanceProtocol:
    """Return how plans are carried out, by either of the two keys; for a clairvoyant it is incremental."""
    return RebalanceProtocol.INCREMENTAL if scenario.autoscaler.policy == CLAIRVOYANT else requested_protocol(scenario)


def requested_protocol(scenario: Scenario) -> RebalanceProtocol:
    """Return how plans are carried out under any policy but clairvoyant."""
    return RebalanceProtocol(scenario.payment.runtime or scenario.payment.rebalance_protocol)


def settings_of(scenario: Scenario) -> SimulationSettings:
    """Return the world that the scenario describes. Raises InvalidSettingsError, also where W is too short to serve."""
    world, scaling, payment = scenario.simulation, scenario.autoscaler, scenario.payment
    try:
        bin_capacity(
            service_rate=true_service_rate(scenario),
            latency_target_s=scenario.target.latency_target_s,
            bursts=scenario.load.spacing is Spacing.BURST,
        )
        return SimulationSettings(
            service=ServiceSettings(**shared_fields(world, ServiceSettings), **shared_fields(payment, EventCost)),
            rebalance_protocol=RebalanceSettings(
                rebalance_protocol=protocol_of(scenario),
                pause_s=scaling.rebalance_time_s if world.pause_s is None else world.pause_s,
                rebalance_time_s=scaling.rebalance_time_s,
                heartbeat_s=payment.heartbeat_s,
            ),
            **shared_fields(world, ObservationSettings),
            startup_s=None if world.startup_s == "gke" else world.startup_s,
            latency_target_s=scenario.target.latency_target_s,
            decision_interval_s=scaling.decision_interval_s,
            tick_offset_s=scaling.tick_offset_s,
            initial_replicas=scaling.initial_replicas,
            planned_rebalance_time_s=None if scaling.learn_rebalance_time else scaling.rebalance_time_s,
            failures=tuple(Failure(at_s, world.failures_known) for at_s in world.failures_s),
            session_s=payment.session_s,
            seed=scenario.seed,
        )
    except ValueError as wrong:
        raise InvalidSettingsError([f"{scenario.name}: {wrong}"]) from wrong


def true_service_rate(scenario: Scenario) -> float:
    """Return μ in events/s of a replica of speed 1."""
    return 1 / (scenario.payment.service_time_s + scenario.simulation.overhead_s)
