"""Measure how many events per second the simulator serves in whole runs: events are built, and a policy decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.benchmark import QuickBenchmark, Row, Tools
from bench.scenario import load_scenario
from bench.simulation.run import run_scenario

RATE_PER_REPLICA: Final = 100
"""Events/s per replica, in one burst a second. An event takes 5 ms, so a replica is busy half of the time."""
SIZES: Final = ((9, 3, 30_000), (100, 20, 500), (1_000, 200, 50), (1_000, 200, 3_600))
"""Partitions, replicas and duration (s); `quick` skips the last size."""


@dataclass(kw_only=True)
class Simulator(QuickBenchmark):
    """Measure the number of events that the simulator serves per second on one core."""

    def cases(self) -> Sequence[str]:
        """Return the sizes."""
        return [" ".join(map(str, size)) for size in SIZES[: -1 if self.quick else None]]

    def measure(self, case: str, tools: Tools) -> Row:
        """Run one size with a constant count and with a policy that packs partitions."""
        partitions, replicas, duration_s = map(int, case.split())
        size = {"partitions": partitions, "initial_replicas": replicas, "duration_s": duration_s}
        row: Row = {"partitions": partitions, "replicas": replicas}
        for policy in ("static", "algorithm-2"):
            changes = {"workload": f"{replicas * RATE_PER_REPLICA} for 60", "policy": policy, **size}
            result = run_scenario(load_scenario("step", changes), keep_events=False)[1]
            row |= {"events": result.events, f"{policy}_events_per_s": result.events / result.wall_s}
        return row
