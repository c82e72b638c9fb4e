"""Measure the time of `tailpack report`, as a user runs it, on a simulated run of any size.

The run repeats the workload W1. On average, ten replicas share 24 partitions. Three waves of bursts arrive in ten
minutes. During the waves, plans move partitions, replicas start, and one replica dies.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import numpy as np
import psutil

from bench import BenchError
from bench.benchmark import Benchmark, Option, Row, Tools, environ_of
from loadgen.children import Child, python_module
from loadgen.shapes import IntArray, w1
from report.result import Result

W1_FACTOR: Final = 18
"""The event counts of W1 are multiplied by this factor. The service time is a fifth of that of W1."""
SETTINGS: Final = (
    *("payment.partitions=24", "payment.service_time_s=0.001", "payment.session_s=3", "simulation.split=random"),
    *("simulation.startup_s=1.5", "simulation.failures_known=false", "autoscaler.initial_replicas=4"),
)
FIRST_DEATH_S: Final = 200.0
SAMPLE_S: Final = 0.2
DEADLINE_S: Final = 1800.0


@dataclass(kw_only=True)
class Report(Benchmark):
    """Measure wall time and memory of `tailpack report` on a simulated run, process start included."""

    events: Annotated[int, Option("Number of events of the run.", least=1)] = 1_000_000

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
            _tailpack(
                temporary, "simulate", "w1", "--trace", str(trace), "--seed", "1", *settings, "--out", str(folder)
            )
            tools.announce(status=f"reporting on {self.events:,} events")
            wall_s, peak_mib = _tailpack(temporary, "report", str(folder))
            result = Result.load(folder)
        if result.events != self.events:
            raise BenchError(f"the report has {result.events:,} of {self.events:,} events; its time is not valid")
        return {
            "events": self.events,
            "wall_s": round(wall_s, 2),
            "peak_rss_gib": round(peak_mib / 1024, 3),
            "events_per_s": round(self.events / wall_s, 1),
            "in_sla": result.in_sla,
        }


def arrivals(events: int) -> IntArray:
    """Return the events of each second, `events` in total; the last repetition of W1 is cut short."""
    once = W1_FACTOR * w1()
    counts = np.tile(once, -(-events // int(once.sum())))
    counts = np.diff(np.minimum(np.cumsum(counts), events), prepend=0)
    return counts[: int(np.flatnonzero(counts)[-1]) + 1]


def _tailpack(folder: str, *words: str) -> tuple[float, float]:
    """Run a command. Return its wall time in s, and the peak of the summed memory (PSS) of its processes in MiB."""
    child = Child(f"tailpack {words[0]}", [*python_module("tailpack"), *words], environ_of(), Path(folder, "log"))
    began_s, peak_mib = time.monotonic(), 0.0
    child.start()
    try:
        while child.pid and time.monotonic() - began_s < DEADLINE_S:
            peak_mib = max(peak_mib, _memory_mib(child.pid))
            time.sleep(SAMPLE_S)
        wall_s = time.monotonic() - began_s
    finally:
        child.terminate()
        child.wait()
    if child.exit_status:
        raise BenchError(f"{child.name} failed after {wall_s:.0f} s: {child.ending()}; correct this and measure again")
    return wall_s, peak_mib


def _memory_mib(pid: int) -> float:
    try:
        top = psutil.Process(pid)
        memory = [process.memory_full_info() for process in (top, *top.children(recursive=True))]
    except psutil.Error:
        return 0.0
    return float(sum(getattr(sizes, "pss", sizes.uss) for sizes in memory)) / 2**20
