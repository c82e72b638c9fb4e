"""How fast the simulator serves events, and how that grows with the run and with the partitions.

Each second brings one burst, then a control step: everything is served up to it, both offsets are asked for, and every
tenth step one command is given. Of an engine alone, making the workload is not counted; a whole run counts everything.
"""

import resource
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import numpy as np

from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.simulator.arrivals import PIECE, Arrivals, Workload
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.engine import Engine
from autoscaler.simulator.pool import Pool
from autoscaler.simulator.run import simulate
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings

RATE_PER_REPLICA: Final = 100
"""Events/s; at 5 ms each the replicas are busy half of the time."""
SERVICE: Final = ServiceSettings(service_time_s=0.005)
CHUNK_EVENTS: Final = PIECE
"""Events that are fed at once: as many as in a whole run."""
COMMAND_EACH_S: Final = 10
Command = Callable[[int], None]
"""Told how many commands there were before."""

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


class SpeedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One workload, served."""

    measured: str = ENGINE
    """ENGINE, POOL, or the policy of a whole run."""
    events: int
    partitions: int
    replicas: int
    wall_s: float
    process_s: float
    """Processor time; the one to compare on a machine that does other things too."""
    events_per_s: float
    """Per second of processor time: all of it uses one core."""
    policy_s: float = 0.0
    """Processor time that the policy of a whole run took, its guards included."""
    peak_mb: float | None = None
    """Of a whole run: the most memory that the process ever held, Python and the compiler included."""


class SimulatorSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """What `tailpack bench simulator` says. The figures of its head are those of the largest row of the small group."""

    events_per_s: float
    wall_s: float
    growth: tuple[SpeedRow, ...]


def measure_all(*, quick: bool, report: Callable[[SpeedRow], None] = lambda row: None) -> SimulatorSpeed:
    """Measure every size and every group, the pool and, if not `quick`, the largest group for an hour: by the engine
    alone and as whole runs. `report` is given each row at once.
    """
    partitions, replicas = GROUPS[0]
    for server in (ENGINE, POOL):  # the compiler's time is not theirs
        measure(server, events=1_000, partitions=partitions, replicas=replicas)
    runs = [(ENGINE, events, *GROUPS[0]) for events in SIZES]
    runs += [(ENGINE, SIZES[1], *group) for group in GROUPS[1:]]
    runs += [(POOL, SIZES[1], *group) for group in (GROUPS[0], GROUPS[-1])]
    if not quick:
        runs += [(what, LARGEST, *GROUPS[-1]) for what in (ENGINE, *POLICIES)]
    rows = []
    for what, events, partitions, replicas in runs:
        one = measure_run if what in POLICIES else measure
        rows.append(one(what, events=events, partitions=partitions, replicas=replicas))
        report(rows[-1])
    head = rows[len(SIZES) - 1]
    return SimulatorSpeed(events_per_s=head.events_per_s, wall_s=head.wall_s, growth=tuple(rows))


def measure(server: str = ENGINE, *, events: int, partitions: int, replicas: int) -> SpeedRow:
    """Let an engine or a pool serve a burst workload of at least one event in each second.

    Raises RuntimeError if an event was not served.
    """
    engine, command = (_pool if server == POOL else _engine)(partitions, replicas)
    watch = _Watch()
    served = second = 0
    for chunk, seconds in _chunks(events=events, partitions=partitions, rate=replicas * RATE_PER_REPLICA):
        with watch:
            engine.feed(chunk)
            for past in range(second + 1, second + seconds + 1):
                _control_step(engine, past, command)
            served += len(engine.take().done_us)
        second += seconds
    engine.drain()
    served += len(engine.take().done_us)
    _check(served, events)
    return watch.row(server, events=events, partitions=partitions, replicas=replicas)


def measure_run(policy: str, *, events: int, partitions: int, replicas: int) -> SpeedRow:
    """Simulate the same workload as a whole run: the controller and `policy` decide each second, latencies are kept.

    Making the workload is counted. Raises RuntimeError if an event was not served.
    """
    rate = replicas * RATE_PER_REPLICA
    chunks = (chunk for chunk, _ in _chunks(events=events, partitions=partitions, rate=rate))
    deciding = make_policy(policy, PolicySettings(static_replicas=replicas), GuardSettings())
    watch = _Watch()
    with watch:
        run = simulate(
            Workload(partitions, float(-(-events // rate)), chunks),
            deciding,
            SimulationSettings(initial_replicas=replicas),
            keep_events=False,
            clock=time.process_time,
        )
    _check(len(run.latency_us), events)
    row = watch.row(policy, events=events, partitions=partitions, replicas=replicas)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return msgspec.structs.replace(row, policy_s=run.policy_s, peak_mb=peak_mb)


class _Watch:
    """Adds up the time of the blocks that it is entered for."""

    def __init__(self) -> None:
        self._wall_s = self._process_s = 0.0

    def __enter__(self) -> None:
        self._wall_s -= time.perf_counter()
        self._process_s -= time.process_time()

    def __exit__(self, *_: object) -> None:
        self._process_s += time.process_time()
        self._wall_s += time.perf_counter()

    def row(self, measured: str, *, events: int, partitions: int, replicas: int) -> SpeedRow:
        """Return what was seen."""
        return SpeedRow(
            measured=measured,
            events=events,
            partitions=partitions,
            replicas=replicas,
            wall_s=self._wall_s,
            process_s=self._process_s,
            events_per_s=events / self._process_s,
        )


def _engine(partitions: int, replicas: int) -> tuple[Engine, Command]:
    """Return an engine whose command hands one partition to the next replica."""
    engine = Engine(partitions, ServiceTimes(SERVICE, seed=1))
    for _ in range(replicas):
        engine.add_replica()
    for partition in range(partitions):
        engine.attach(partition, partition % replicas)

    def hand_over(turn: int) -> None:
        partition = turn % partitions
        engine.attach(partition, (engine.owner(partition) + 1) % replicas)

    return engine, hand_over


def _pool(partitions: int, replicas: int) -> tuple[Pool, Command]:
    """Return a pool whose command lets one replica leave and come back."""
    pool = Pool(partitions, ServiceTimes(SERVICE, seed=1))
    for _ in range(replicas):
        pool.join(pool.add_replica())

    def leave_and_join(turn: int) -> None:
        pool.leave(turn % replicas)
        pool.join(turn % replicas)

    return pool, leave_and_join


def _control_step(engine: Engine | Pool, second: int, command: Command) -> None:
    engine.advance(second * 1_000_000)
    engine.produced()
    engine.committed()
    if second % COMMAND_EACH_S == 0:
        command(second // COMMAND_EACH_S)


def _check(served: int, events: int) -> None:
    if served != events:
        raise RuntimeError(f"{served} of {events} events were served")


def _chunks(*, events: int, partitions: int, rate: int) -> Iterator[tuple[Arrivals, int]]:
    """Yield chunks of whole seconds, and how many seconds each lasts."""
    chance = np.random.default_rng(1)
    a_chunk = max(1, CHUNK_EVENTS // rate) * rate
    for first in range(0, events, a_chunk):
        count = min(a_chunk, events - first)
        intended_us = np.arange(first, first + count) // rate * 1_000_000
        chunk = Arrivals(intended_us, chance.integers(0, partitions, count, dtype=np.int32))
        yield chunk, -(-count // rate)
