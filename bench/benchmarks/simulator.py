"""How many events per second the simulator serves.

Each second of the workload brings one burst and then a control step, which asks for both offsets. The time to make the
workload counts for whole runs only.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.simulator.arrivals import PIECE, Arrivals, Workload
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.engine import Engine
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.run import simulate
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings
from bench.benchmark import Benchmark, Row, Tools

RATE_PER_REPLICA: Final = 100
"""Events/s; with 5 ms of work each, a replica is busy half of the time."""
SMALL, LARGE = (9, 3), (1_000, 200)
HEAD: Final = ("engine", 10_000_000, SMALL)
RUNS: Final = (
    # what serves, events, (partitions, replicas)
    ("engine", 100_000, SMALL),
    ("engine", 1_000_000, SMALL),
    HEAD,
    *(("engine", 1_000_000, group) for group in ((5, 5), (100, 20), LARGE)),
    *(("pool", 1_000_000, group) for group in (SMALL, LARGE)),
)
LONG_RUNS: Final = tuple((what, 72_000_000, LARGE) for what in ("engine", "static", "algorithm-2"))
"""One hour at 20,000 events/s: the engine alone, and whole runs under two policies."""


@dataclass(kw_only=True)
class Simulator(Benchmark):
    """Measure how many events per second of one core the simulator serves."""

    def cases(self) -> Sequence[str]:
        """Return the runs by name."""
        return list(_runs(quick=self.quick))

    def measure(self, case: str, place: object, tools: Tools) -> Row:
        """Serve one workload."""
        what, events, group = _runs(quick=self.quick)[case]
        serve(what, 1_000, *group)  # the compiler's time is not the simulator's
        return serve(what, events, *group)

    def figures(self, rows: Sequence[Row]) -> Row:
        """Return the row of the largest run of the engine with few partitions."""
        named = [row for row in rows if (row["measured"], row["events"], row["partitions"]) == (*HEAD[:2], SMALL[0])]
        return (named or rows)[0]


def serve(what: str, events: int, partitions: int, replicas: int) -> Row:
    """Serve at least one event in each second: what is "engine", "pool" or the policy of a whole run.

    Raises RuntimeError if an event was not served.
    """
    policy_s = None
    if what in ("engine", "pool"):
        served, (wall_s, process_s) = _alone(what, events, partitions, replicas)
    else:
        began_s = _now_s()
        workload = Workload(
            partitions,
            float(-(-events // (replicas * RATE_PER_REPLICA))),
            (one for one, _ in _chunks(events, partitions, replicas)),
        )
        policy = make_policy(what, PolicySettings(static_replicas=replicas), GuardSettings())
        settings = SimulationSettings(initial_replicas=replicas)
        found = simulate(workload, policy, settings, keep_events=False, clock=time.process_time)
        served, policy_s, (wall_s, process_s) = len(found.latency_us), found.policy_s, _now_s() - began_s
    if served != events:
        raise RuntimeError(f"{served} of {events} events were served")
    return {
        "measured": what,
        "events": events,
        "partitions": partitions,
        "replicas": replicas,
        "wall_s": float(wall_s),
        "process_s": float(process_s),
        "events_per_s": float(events / process_s),
        "policy_s": policy_s,
    }


def _runs(*, quick: bool) -> dict[str, tuple[str, int, tuple[int, int]]]:
    runs = RUNS if quick else RUNS + LONG_RUNS
    return {f"{what}, {events:,} events, {group[0]} partitions": (what, events, group) for what, events, group in runs}


def _now_s() -> NDArray[np.float64]:
    """Return wall and processor time."""
    return np.array([time.perf_counter(), time.process_time()])


def _alone(server: str, events: int, partitions: int, replicas: int) -> tuple[int, NDArray[np.float64]]:
    """Return how many events were served, and the time that took."""
    times = ServiceTimes(ServiceSettings(service_time_s=0.005), seed=1)
    engine: Engine | Pool = Pool(partitions, times) if server == "pool" else Engine(partitions, times)
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


def _chunks(events: int, partitions: int, replicas: int) -> Iterator[tuple[Arrivals, int]]:
    """Yield chunks of whole seconds, as large as in a whole run, and the length of each in seconds."""
    chance, rate = np.random.default_rng(1), replicas * RATE_PER_REPLICA
    a_chunk = max(1, PIECE // rate) * rate
    for first in range(0, events, a_chunk):
        count = min(a_chunk, events - first)
        intended_us = np.arange(first, first + count) // rate * 1_000_000
        yield Arrivals(intended_us, chance.integers(0, partitions, count, dtype=np.int32)), -(-count // rate)
