"""How fast the report is: the job as users get it, on a made-up run of any size that lies in files.

The run is W1 again and again through the simulator. Ten replicas on average share 24 partitions; each ten minutes have
three waves of bursts, in which plans move partitions, replicas start, and one dies.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from autoscaler.jit import load_compiler
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.timeline import timeline
from bench.results import SparkRow
from bench.scenario import Scenario, load_scenario
from bench.simulation.build import settings_of
from bench.simulation.folder import write_run
from bench.simulation.policy import policy_of
from bench.simulation.sent import Sent, sent_by
from loadgen.shapes import IntArray, w1
from loadgen.trace import Trace
from report.result import Result
from tailpack.errors import TailpackError
from tailpack.local.jars import ensure
from tailpack.local.resources import ResourceMeter
from tailpack.provenance import describe_simulated
from tailpack.report_job import write_report

SEED: Final = 1
TIMES_W1: Final = 18
"""How many times the events of W1 arrive, at a fifth of its service time."""
PARTITIONS: Final = 24
PLACED_LATE_US: Final = 150.0
"""Mean time from the intended to the real sending of an event."""
NOTED_LATE_US: Final = 400
"""A completion is noted up to so much later than it is simulated, less than a service takes: else there were few
different latencies, unlike in any real run."""
DIES_AT_S: Final = 200
"""Of each ten minutes; it is the replica that has most to do, and nobody is told until its session expires."""


def measure(events: int, console: Console) -> SparkRow:
    """Report on a made-up run of `events` events that lies in Parquet files. Raises TailpackError as `_reported`."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with console.status(f"making a run of {events:,} events"):
            scenario, sent, run = made_up(events, SEED)
            info = describe_simulated(scenario, sent, run.drained_us, folder)
            write_run(folder, run, info, as_noted(run, SEED))
        result, wall_s, peak_mib = _reported(folder, events, console)
    return SparkRow(
        events=events,
        wall_s=round(wall_s, 2),
        peak_rss_gib=round(peak_mib / 1024, 3),
        events_per_s=round(events / wall_s, 1),
        in_sla=result.in_sla,
        late_by_cause={one.cause: one.events for one in result.tail.causes} if result.tail else {},
    )


def _reported(folder: Path, events: int, console: Console) -> tuple[Result, float, float]:
    """Return the report, its wall time (s) from the start of its process to its end, and its memory at the peak (MiB).

    Memory is the PSS of Python and the JVM. Raises TailpackError when the job fails, or did not see every event.
    """
    ensure("spark", lambda said: console.print(said, highlight=False))
    meter, began = ResourceMeter(), time.monotonic()
    with console.status(f"Spark reports on {events:,} events"):
        write_report(folder, while_waiting=lambda processes: _sample(meter, processes))
    wall_s = time.monotonic() - began
    result = Result.load(folder)
    if result.events != events:
        raise TailpackError(f"the report saw {result.events:,} of {events:,} events; its time would mean nothing")
    return result, wall_s, meter.peak_mib


def _sample(meter: ResourceMeter, processes: dict[str, int]) -> None:
    meter.sample(processes, time.monotonic())


def made_up(events: int, seed: int) -> tuple[Scenario, Sent, Run]:
    """Return a run of exactly `events` events, with its scenario and what was sent."""
    load_compiler()
    counts = counts_of(events)
    scenario = scenario_for(seed, len(counts))
    sent = sent_by(scenario, Trace("W1 again and again", counts))
    return scenario, sent, simulate(sent.workload(), policy_of(scenario, sent), settings_of(scenario))


def counts_of(events: int) -> IntArray:
    """Return events of each second, in all as many as asked for; W1 ends early the last time."""
    once = TIMES_W1 * w1()
    counts = np.tile(once, -(-events // int(once.sum())))
    counts = np.diff(np.minimum(np.cumsum(counts), events), prepend=0)
    return counts[: int(np.flatnonzero(counts)[-1]) + 1]


def as_noted(run: Run, seed: int) -> dict[str, NDArray[Any]]:
    """Return the events of a run with times as processes note them: a little late."""
    columns, chance = timeline(run, 0), np.random.default_rng(seed)
    count = len(columns["done_us"])
    sent_us = columns["placed_us"] + chance.exponential(PLACED_LATE_US, count).astype(np.int64)
    noted_us = columns["done_us"] + chance.integers(0, NOTED_LATE_US, count)
    return columns | {"placed_us": np.minimum(sent_us, columns["received_us"]), "done_us": noted_us}


def scenario_for(seed: int, duration_s: int) -> Scenario:
    """Return the scenario of a run so long, whatever W1 itself lasts."""
    changes = {
        "payment.partitions": PARTITIONS,
        "payment.service_time_s": 0.001,
        "payment.session_s": 3,
        "simulation.split": "random",
        "simulation.startup_s": 1.5,
        "simulation.failures_known": False,
        "autoscaler.initial_replicas": 4,
        "seed": seed,
    }
    once = load_scenario("w1", changes)
    deaths_s = tuple(map(float, range(DIES_AT_S, duration_s, len(w1()))))
    return replace(once, duration_s=duration_s, simulation=replace(once.simulation, failures_s=deaths_s))
