"""How fast the simulator serves events, and how that grows with the run and with the partitions.

Each second brings one burst, then a control step: everything is served up to it, and both offsets are asked for. Of an
engine alone, making the workload is not counted; a whole run counts everything.
"""

import resource
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.simulator.arrivals import PIECE, Arrivals, Workload
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.engine import Engine
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings
from bench.results import SpeedRow

RATE_PER_REPLICA: Final = 100
"""Events/s; at 5 ms each the replicas are busy half of the time."""
ENGINE: Final = "engine"
POOL: Final = "pool"
"""What serves a share group."""
SIZES: Final = (100_000, 1_000_000, 10_000_000)
"""Events, at the first of the groups."""
GROUPS: Final = ((9, 3), (5, 5), (100, 20), (1_000, 200))
"""(partitions, replicas)."""
POLICIES: Final = ("static", "algorithm-2")
"""Of whole runs: one that never changes anything, and one that moves partitions at each tick under this load."""
LARGEST: Final = 72_000_000
"""Events of an hour at 20,000 per second, for the largest of the groups."""


class SimulatorSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """What `tailpack bench simulator` says. The figures of its head are those of the largest row of the small group."""

    events_per_s: float
    wall_s: float
    growth: tuple[SpeedRow, ...]


def measure_all(*, quick: bool, report: Callable[[SpeedRow], None] = lambda row: None) -> SimulatorSpeed:
    """Measure every size and group, the pool and, if not `quick`, an hour of the largest group, as whole runs too.

    `report` is given each row at once.
    """
    for server in (ENGINE, POOL):  # the compiler's time is not theirs
        measure(server, events=1_000, partitions=9, replicas=3)
    runs = [(ENGINE, events, *GROUPS[0]) for events in SIZES]
    runs += [(ENGINE, SIZES[1], *group) for group in GROUPS[1:]]
    runs += [(POOL, SIZES[1], *group) for group in (GROUPS[0], GROUPS[-1])]
    if not quick:
        runs += [(what, LARGEST, *GROUPS[-1]) for what in (ENGINE, *POLICIES)]
    rows = []
    for what, events, partitions, replicas in runs:
        rows.append(measure(what, events=events, partitions=partitions, replicas=replicas))
        report(rows[-1])
    head = rows[len(SIZES) - 1]
    return SimulatorSpeed(events_per_s=head.events_per_s, wall_s=head.wall_s, growth=tuple(rows))


def measure(what: str, *, events: int, partitions: int, replicas: int) -> SpeedRow:
    """Let an engine, a pool, or a whole run under the policy of this name serve at least one event in each second.

    Raises RuntimeError if an event was not served.
    """
    of_the_run: dict[str, Any] = {}
    if what in (ENGINE, POOL):
        served, spent_s = _alone(what, events, partitions, replicas)
    else:
        began_s = _now_s()
        run = _whole_run(what, events, partitions, replicas)
        served, spent_s = len(run.latency_us), _now_s() - began_s
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        of_the_run = {"policy_s": run.policy_s, "peak_mb": peak_mb}
    if served != events:
        raise RuntimeError(f"{served} of {events} events were served")
    wall_s, process_s = spent_s.tolist()
    return SpeedRow(
        measured=what,
        events=events,
        partitions=partitions,
        replicas=replicas,
        wall_s=wall_s,
        process_s=process_s,
        events_per_s=events / process_s,
        **of_the_run,
    )


def _now_s() -> NDArray[np.float64]:
    """Return wall and processor time."""
    return np.array([time.perf_counter(), time.process_time()])


def _alone(server: str, events: int, partitions: int, replicas: int) -> tuple[int, NDArray[np.float64]]:
    """Return how many events were served, and the time that took."""
    times = ServiceTimes(ServiceSettings(service_time_s=0.005), seed=1)
    engine: Engine | Pool = Pool(partitions, times) if server == POOL else Engine(partitions, times)
    for replica in [engine.add_replica() for _ in range(replicas)]:
        if isinstance(engine, Pool):
            engine.join(replica)
        else:
            for partition in range(replica, partitions, replicas):
                engine.attach(partition, replica)
    served, second, spent_s = 0, 0, np.zeros(2)
    for chunk, seconds in _chunks(events, partitions, replicas):
        began_s = _now_s()
        engine.feed(chunk)
        for past in range(second + 1, second + seconds + 1):
            engine.advance(past * 1_000_000)
            engine.produced()
            engine.committed()
        served += len(engine.take().done_us)
        spent_s += _now_s() - began_s
        second += seconds
    engine.drain()
    return served + len(engine.take().done_us), spent_s


def _whole_run(policy: str, events: int, partitions: int, replicas: int) -> Run:
    """Simulate the same workload: the controller and `policy` decide each second, latencies are kept."""
    duration_s = float(-(-events // (replicas * RATE_PER_REPLICA)))
    workload = Workload(partitions, duration_s, (chunk for chunk, _ in _chunks(events, partitions, replicas)))
    deciding = make_policy(policy, PolicySettings(static_replicas=replicas), GuardSettings())
    settings = SimulationSettings(initial_replicas=replicas)
    return simulate(workload, deciding, settings, keep_events=False, clock=time.process_time)


def _chunks(events: int, partitions: int, replicas: int) -> Iterator[tuple[Arrivals, int]]:
    """Yield chunks of whole seconds, as large as in a whole run, and how many seconds each lasts."""
    chance, rate = np.random.default_rng(1), replicas * RATE_PER_REPLICA
    a_chunk = max(1, PIECE // rate) * rate
    for first in range(0, events, a_chunk):
        count = min(a_chunk, events - first)
        intended_us = np.arange(first, first + count) // rate * 1_000_000
        yield Arrivals(intended_us, chance.integers(0, partitions, count, dtype=np.int32)), -(-count // rate)
