"""Build the input of a simulated run: settings of the simulator, and events as chunks or as a table of counts."""

from collections.abc import Callable, Iterator, Sequence
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
from loadgen.workloads import find_workload
from report.measures import MINUTE_US, bin_capacity

CLAIRVOYANT: Final = "clairvoyant"
NO_KEYS: Final = Keys(0)
CHUNK_EVENTS: Final = 200_000
"""Events per chunk. A chunk has a few megabytes and is simulated in about 10 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class SentEvents:
    """Events of one run. They are generated from the seed each time they are read."""

    counts: IntArray
    """Number of events in each second, shape (seconds,); with Split.TABLE (seconds, partitions)."""
    spacing: Spacing
    split: Split
    partitions: int
    seed: int
    bursts: Bursts = EACH_SECOND
    trace: Callable[[], Iterator[Schedule]] | None = None
    """Returns the single events of a trace in order of time; None: events are generated from `counts`."""
    keys: Keys = NO_KEYS
    """Keys of the events, with the partitioner that uses them."""

    @property
    def duration_s(self) -> int:
        """Duration of the load in seconds."""
        return len(self.counts)

    @property
    def events(self) -> int:
        """Total number of events."""
        return int(self.counts.sum())

    def workload(self) -> Workload:
        """Return the events in the format of the simulator."""
        arrivals = (Arrivals(chunk.offset_us, chunk.partition) for chunk in self.chunks())
        return Workload(self.partitions, float(self.duration_s), arrivals)

    def chunks(self) -> Iterator[Schedule]:
        """Yield the events in chunks of whole seconds. Events of a trace are yielded as they are read."""
        return self.keys.assign_keys(self._own_chunks()) if self.keys.change_partitions else self._own_chunks()

    def _own_chunks(self) -> Iterator[Schedule]:
        if self.trace is not None:
            return self.trace()
        chunks = partial(schedule_chunks, self.counts, CHUNK_EVENTS, spacing=self.spacing, split=self.split)
        return chunks(partitions=self.partitions, seed=self.seed, bursts=self.bursts)

    def table(self) -> IntArray:
        """Return the events of each second and partition, shape (seconds, partitions)."""
        stays_in_second = self.spacing is not Spacing.BURST or self.bursts == EACH_SECOND
        counts_are_exact = stays_in_second and not self.keys.change_partitions
        if self.split is Split.TABLE and counts_are_exact:
            return self.counts
        if self.split is Split.EVEN and counts_are_exact:
            totals = np.concatenate([[0], np.cumsum(self.counts)])[:, None]
            return np.diff((totals - np.arange(self.partitions) + self.partitions - 1) // self.partitions, axis=0)
        table = np.zeros((self.duration_s, self.partitions), dtype=np.int64)
        for chunk in self.chunks():
            begin, end = chunk.offset_us[[0, -1]] // SECOND_US if len(chunk) else (0, 0)
            cell = (chunk.offset_us // SECOND_US - begin) * self.partitions + chunk.partition
            size = (end + 1 - begin) * self.partitions
            table[begin : end + 1] += np.bincount(cell, minlength=size).reshape(-1, self.partitions)
        return table


def build_events(scenario: Scenario, trace: Trace | EventTrace | None = None) -> SentEvents:
    """Return the events of the scenario; a trace replaces rate and duration, see `Scenario.with_trace`.

    Raises InvalidSettingsError if the trace is invalid.
    """
    if trace is None and scenario.load.trace:
        trace = read_trace(Path(scenario.load.trace), scenario.payment.partitions)
    if trace is not None:
        scenario = scenario.with_trace(trace)
    workload = find_workload(scenario.load.workload)
    split, partitions = scenario.simulation.split or scenario.load.split, scenario.payment.partitions
    bursts = Bursts(**shared_fields(scenario.load, Bursts))
    hot = read_faults(scenario.load.faults, HOT_KEY)
    keys = Keys(scenario.seed, scenario.load.key_skew, scenario.load.partitioner, partitions, hot)
    if isinstance(trace, EventTrace):
        events = partial(trace.chunks, keys=keys.have_effect)
        return SentEvents(trace.counts, scenario.load.spacing, split, partitions, scenario.seed, bursts, events, keys)
    counts = workload.events(scenario.duration_s) if trace is None else counts_of(trace, workload, split)
    counts = apply_bursts(counts, scenario.load.faults)
    return SentEvents(counts, scenario.load.spacing, split, partitions, scenario.seed, bursts, keys=keys)


def protocol_of(scenario: Scenario) -> RebalanceProtocol:
    """Return the rebalance protocol of the simulation. It is incremental for the clairvoyant policy."""
    return RebalanceProtocol.INCREMENTAL if scenario.autoscaler.policy == CLAIRVOYANT else configured_protocol(scenario)


def configured_protocol(scenario: Scenario) -> RebalanceProtocol:
    """Return the configured rebalance protocol: `payment.runtime`, else `payment.rebalance_protocol`."""
    return RebalanceProtocol(scenario.payment.runtime or scenario.payment.rebalance_protocol)


def settings_of(scenario: Scenario) -> SimulationSettings:
    """Return the settings of the simulator. Raises InvalidSettingsError, also if `bin_capacity` is below 1."""
    simulation, scaling, payment = scenario.simulation, scenario.autoscaler, scenario.payment
    try:
        bin_capacity(
            service_rate=true_service_rate(scenario),
            latency_target_s=scenario.target.latency_target_s,
            bursts=scenario.load.spacing is Spacing.BURST,
        )
        return SimulationSettings(
            service=ServiceSettings(**shared_fields(simulation, ServiceSettings), **shared_fields(payment, EventCost)),
            rebalance=RebalanceSettings(
                rebalance_protocol=protocol_of(scenario),
                pause_s=scaling.rebalance_time_s if simulation.pause_s is None else simulation.pause_s,
                rebalance_time_s=scaling.rebalance_time_s,
                heartbeat_s=payment.heartbeat_s,
            ),
            **shared_fields(simulation, ObservationSettings),
            startup_s=None if simulation.startup_s == "gke" else simulation.startup_s,
            latency_target_s=scenario.target.latency_target_s,
            decision_interval_s=scaling.decision_interval_s,
            tick_offset_s=scaling.tick_offset_s,
            initial_replicas=scaling.initial_replicas,
            planned_rebalance_time_s=None if scaling.learn_rebalance_time else scaling.rebalance_time_s,
            failures=tuple(Failure(at_s, simulation.failures_known) for at_s in simulation.failures_s),
            session_s=payment.session_s,
            seed=scenario.seed,
        )
    except ValueError as error:
        raise InvalidSettingsError([f"{scenario.name}: {error}"]) from error


def true_service_rate(scenario: Scenario) -> float:
    """Return the service rate (μ) of a replica with speed 1, events/s."""
    return 1 / (scenario.payment.service_time_s + scenario.simulation.overhead_s)


def replica_minutes(changes: Sequence[tuple[int, float]], started_us: int, duration_s: float) -> float:
    """Return the replica-minutes of the workload: the requested replicas, summed over its `duration_s` seconds.

    changes: (µs since the epoch, replicas requested from then on), by time. They may begin before the workload.
    """
    ended_us = started_us + round(duration_s * 1e6)
    area_us, at_us, replicas = 0.0, started_us, 0.0
    for changed_us, requested in changes:
        now_us = min(max(changed_us, started_us), ended_us)
        area_us += replicas * (now_us - at_us)
        at_us, replicas = now_us, requested
    return (area_us + replicas * (ended_us - at_us)) / MINUTE_US
