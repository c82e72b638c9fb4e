"""How fast the simulator's engine serves events, and how that grows with the run and with the partitions.

Each second brings one burst, then a control step: everything is served up to it, both offsets are asked for, and every
tenth step one partition is handed to the next replica. Making the workload and the policies' own time are not counted.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import numpy as np

from autoscaler.simulator.arrivals import Arrivals
from autoscaler.simulator.fast import FastEngine
from autoscaler.simulator.service import ServiceTimes
from autoscaler.simulator.settings import ServiceSettings

RATE_PER_REPLICA: Final = 100
"""Events/s; at 5 ms each the replicas are busy half of the time."""
CHUNK_EVENTS: Final = 1_000_000
HANDOVER_EACH_S: Final = 10

SIZES: Final = (100_000, 1_000_000, 10_000_000)
"""Events, at the first of the groups."""
GROUPS: Final = ((9, 3), (5, 5), (100, 20), (1_000, 200))
"""(partitions, replicas)."""
LARGEST: Final = 72_000_000
"""Events of an hour at 20,000 per second, for the largest of the groups."""


class SpeedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One workload, served."""

    events: int
    partitions: int
    replicas: int
    wall_s: float
    process_s: float
    """Processor time; the one to compare on a machine that does other things too."""
    events_per_s: float
    """Per second of processor time: the engine uses one core."""


class SimulatorSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """What `tailpack bench simulator` says. The figures of its head are those of the largest row of the small group."""

    events_per_s: float
    wall_s: float
    growth: tuple[SpeedRow, ...]


def measure_all(*, quick: bool, report: Callable[[SpeedRow], None] = lambda row: None) -> SimulatorSpeed:
    """Measure every size and every group; not `quick`: the largest run too. `report` is given each row at once."""
    partitions, replicas = GROUPS[0]
    measure(events=1_000, partitions=partitions, replicas=replicas)  # the compiler's time is not the engine's
    runs = [(events, *GROUPS[0]) for events in SIZES]
    runs += [(SIZES[1], *group) for group in GROUPS[1:]]
    if not quick:
        runs.append((LARGEST, *GROUPS[-1]))
    rows = []
    for events, partitions, replicas in runs:
        rows.append(measure(events=events, partitions=partitions, replicas=replicas))
        report(rows[-1])
    head = rows[len(SIZES) - 1]
    return SimulatorSpeed(events_per_s=head.events_per_s, wall_s=head.wall_s, growth=tuple(rows))


def measure(*, events: int, partitions: int, replicas: int) -> SpeedRow:
    """Serve a burst workload of at least one event in each second. Raises RuntimeError if an event was not served."""
    engine = FastEngine(partitions, ServiceTimes(ServiceSettings(service_time_s=0.005), seed=1))
    for _ in range(replicas):
        engine.add_replica()
    for partition in range(partitions):
        engine.attach(partition, partition % replicas)
    wall_s = process_s = 0.0
    served = second = 0
    for chunk, seconds in _chunks(events=events, partitions=partitions, rate=replicas * RATE_PER_REPLICA):
        wall_from_s, process_from_s = time.perf_counter(), time.process_time()
        engine.feed(chunk)
        for past in range(second + 1, second + seconds + 1):
            _control_step(engine, past, partitions=partitions, replicas=replicas)
        second += seconds
        served += len(engine.take().done_us)
        wall_s += time.perf_counter() - wall_from_s
        process_s += time.process_time() - process_from_s
    engine.drain()
    served += len(engine.take().done_us)
    if served != events:
        raise RuntimeError(f"{served} of {events} events were served")
    return SpeedRow(
        events=events,
        partitions=partitions,
        replicas=replicas,
        wall_s=wall_s,
        process_s=process_s,
        events_per_s=events / process_s,
    )


def _control_step(engine: FastEngine, second: int, *, partitions: int, replicas: int) -> None:
    engine.advance(second * 1_000_000)
    engine.produced()
    engine.committed()
    if second % HANDOVER_EACH_S == 0:
        partition = second // HANDOVER_EACH_S % partitions
        engine.attach(partition, (engine.owner(partition) + 1) % replicas)


def _chunks(*, events: int, partitions: int, rate: int) -> Iterator[tuple[Arrivals, int]]:
    """Yield chunks of whole seconds, and how many seconds each lasts."""
    chance = np.random.default_rng(1)
    a_chunk = max(1, CHUNK_EVENTS // rate) * rate
    for first in range(0, events, a_chunk):
        count = min(a_chunk, events - first)
        intended_us = np.arange(first, first + count) // rate * 1_000_000
        chunk = Arrivals(intended_us, chance.integers(0, partitions, count, dtype=np.int32))
        yield chunk, -(-count // rate)
