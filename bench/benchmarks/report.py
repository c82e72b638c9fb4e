"""Measure the time of `tailpack report`, as a user runs it, on a simulated run of any size.

The run repeats the workload W1. On average, ten replicas share 24 partitions. Three waves of bursts arrive in ten
minutes. During the waves, plans move partitions, replicas start, and one replica dies.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import numpy as np
import psutil
from typer import Option

from bench import BenchError
from bench.benchmark import Benchmark, Row, Tools, environ_of
from contracts.children import Child, python_module
from loadgen.shapes import IntArray, w1
from report.result import Result

W1_FACTOR: Final = 18
"""The event counts of W1 are multiplied by this factor. The service time is a fifth of that of W1."""
SETTINGS: Final = (
    *("payment.partitions=24", "payment.service_time_s=0.001", "payment.session_s=3", "simulation.split=random"),
    *("simulation.startup_s=1.5", "simulation.failures_known=false", "autoscaler.initial_replicas=4"),
)
FIRST_DEATH_S: Final = 200.0
SAMPLE_S: Final = 0.5
DEADLINE_S: Final = 1800.0


@dataclass(kw_only=True)
class Report(Benchmark):
    """Measure wall time and memory of `tailpack report` on a simulated run, process start included."""

    events: Annotated[int, Option(help="Number of events of the run.", min=1)] = 1_000_000

    def measure(self, case: str, tools: Tools) -> Row:
        """Simulate the run, and report on it in a new process."""
        with TemporaryDirectory() as temporary:
            folder, counts = Path(temporary, "run"), arrivals(self.events)
            trace = Path(temporary, "trace.csv")
            trace.write_text("second,events\n" + "".join(f"{at},{events}\n" for at, events in enumerate(counts)))
            deaths_s = list(np.arange(FIRST_DEATH_S, len(counts), len(w1())).tolist())
            changes = (*SETTINGS, f"duration_s={len(counts)}", f"simulation.failures_s={deaths_s}")
            settings = [word for one in changes for word in ("--set", one)]
            tools.announce(status=f"simulating {self.events:,} events")
            words = ("simulate", "w1", "--trace", str(trace), "--seed", "1", *settings, "--out", str(folder))
            tailpack(temporary, lambda _: None, *words)
            tools.announce(status=f"reporting on {self.events:,} events")
            peak_mib = [0.0]
            wall_s = tailpack(temporary, lambda top: peak_mib.append(_memory_mib(top)), "report", str(folder))
            result = Result.load(folder)
        if result.events != self.events:
            raise BenchError(f"the report has {result.events:,} of {self.events:,} events; its time is not valid")
        return {
            "events": self.events,
            "wall_s": round(wall_s, 2),
            "peak_rss_gib": round(max(peak_mib) / 1024, 3),
            "events_per_s": round(self.events / wall_s, 1),
            "in_sla": result.in_sla,
        }


def arrivals(events: int) -> IntArray:
    """Return the events of each second, `events` in total; the last repetition of W1 is cut short."""
    once = W1_FACTOR * w1()
    counts = np.tile(once, -(-events // int(once.sum())))
    counts = np.diff(np.minimum(np.cumsum(counts), events), prepend=0)
    return counts[: int(np.flatnonzero(counts)[-1]) + 1]


def tailpack(folder: str, watch: Callable[[psutil.Process], None], *words: str) -> float:
    """Run a command, and call `watch` with its process every SAMPLE_S. Return its wall time, s. Raises BenchError."""
    child = Child(f"tailpack {words[0]}", [*python_module("tailpack"), *words], environ_of(), Path(folder, "log"))
    began_s = time.monotonic()
    child.start()
    try:
        while child.pid and time.monotonic() - began_s < DEADLINE_S:
            with suppress(psutil.Error):
                watch(psutil.Process(child.pid))
            time.sleep(SAMPLE_S)
        wall_s = time.monotonic() - began_s
    finally:
        child.terminate()
        child.wait()
    if child.exit_status:
        raise BenchError(f"{child.name} failed after {wall_s:.0f} s: {child.ending()}; correct this and measure again")
    return wall_s


def _memory_mib(top: psutil.Process) -> float:
    """Return the summed memory (PSS) of a process and its descendants."""
    memory = [process.memory_full_info() for process in (top, *top.children(recursive=True))]
    return float(sum(getattr(sizes, "pss", sizes.uss) for sizes in memory)) / 2**20
