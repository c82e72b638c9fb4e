"""Measure how many events the simulator's engine serves per second. `simulate --json` prints times of whole runs.

Each second of the workload has one burst. After it, the produced and the committed offsets are read, as at a tick. The
time to generate the workload is excluded.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from autoscaler.simulator.arrivals import PIECE, Arrivals
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.engine import Engine
from autoscaler.simulator.settings import ServiceSettings
from bench.benchmark import QuickBenchmark, Row, Tools

RATE_PER_REPLICA: Final = 100
"""Events/s per replica. An event takes 5 ms, so a replica is busy half of the time."""
RUNS: Final = {
    f"{run[0]:,} events, {run[1]} partitions": run
    for run in (
        *((10_000_000, 9, 3), (1_000_000, 9, 3), (100_000, 9, 3)),
        *((1_000_000, 5, 5), (1_000_000, 100, 20), (1_000_000, 1_000, 200)),
        (72_000_000, 1_000, 200),  # an hour at 20,000 events/s
    )
}
"""Name of the run → events, partitions, replicas; `quick` skips the last run."""


@dataclass(kw_only=True)
class Simulator(QuickBenchmark):
    """Measure the number of events that the simulator serves per second on one core."""

    def cases(self) -> Sequence[str]:
        """Return the names of the runs."""
        return list(RUNS)[: -1 if self.quick else None]

    def measure(self, case: str, tools: Tools) -> Row:
        """Serve one workload. A small workload is served first, so that all code is compiled."""
        serve(1_000, *RUNS[case][1:])
        return serve(*RUNS[case])


def serve(events: int, partitions: int, replicas: int) -> Row:
    """Serve a workload with at least one event per second. Raises RuntimeError if an event was not served."""
    engine = Engine(partitions, ServiceTimes(ServiceSettings(service_time_s=0.005), seed=1))
    for replica in [engine.add_replica() for _ in range(replicas)]:
        for partition in range(replica, partitions, replicas):
            engine.attach(partition, replica)
    served, second, spent_s = 0, 0, np.zeros(2)
    for chunk, seconds in _chunks(events, partitions, replicas):
        began_s = np.array([time.perf_counter(), time.process_time()])
        engine.feed(chunk)
        for boundary in range(second + 1, second + seconds + 1):
            engine.advance(boundary * 1_000_000)
            engine.produced()
            engine.committed()
        served += len(engine.take().done_us)
        spent_s += np.array([time.perf_counter(), time.process_time()]) - began_s
        second += seconds
    engine.drain()
    served += len(engine.take().done_us)
    if served != events:
        raise RuntimeError(f"{served} of {events} events were served")
    wall_s, process_s = spent_s.tolist()
    found = {"events": events, "partitions": partitions, "replicas": replicas}
    return found | {"wall_s": wall_s, "process_s": process_s, "events_per_s": events / process_s}


def _chunks(events: int, partitions: int, replicas: int) -> Iterator[tuple[Arrivals, int]]:
    chance, rate = np.random.default_rng(1), replicas * RATE_PER_REPLICA
    chunk_events = max(1, PIECE // rate) * rate
    for first in range(0, events, chunk_events):
        count = min(chunk_events, events - first)
        intended_us = np.arange(first, first + count) // rate * 1_000_000
        yield Arrivals(intended_us, chance.integers(0, partitions, count, dtype=np.int32)), -(-count // rate)
