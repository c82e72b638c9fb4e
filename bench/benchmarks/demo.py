"""Measure the cores that each process of the demo uses under a constant load."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

import psutil

from bench import BenchError
from bench.benchmark import Row
from bench.benchmarks.report import SAMPLE_S, tailpack
from contracts.clock import monotonic_s, now_us
from report.result import Result

WARM_UP_S: Final = 12.0
"""Time in which the load rises and nothing is measured, because replicas start and a new JVM uses more CPU."""
MODULE: Final = re.compile(r"(kafka)\.Kafka|services\.(\w+)|(autoscaler)\.live|(loadgen)\.drivers")
PROCESSES: Final = ("kafka", "order", "payment", "shipment", "notification", "autoscaler", "loadgen", "tailpack")
"""Names of the processes. All replicas of Payment count as one; `tailpack` starts and watches the others."""


def measure(rate: int, seconds: float) -> Row:
    """Run the demo with this rate of orders at random times, and return cores and latencies. Raises BenchError."""
    random = Random(1)
    samples = list[tuple[float, dict[tuple[int, str], float]]]()
    with TemporaryDirectory() as temporary:
        trace, whole_s = Path(temporary, "trace.csv"), round(WARM_UP_S + seconds + 4 * SAMPLE_S)
        rates = [round(rate * min(1.0, (second + 1) / WARM_UP_S)) for second in range(whole_s)]
        orders = sorted((at + random.random(), random.randrange(9)) for at, n in enumerate(rates) for _ in range(n))
        trace.write_text("at_s,partition\n" + "".join(f"{at_s},{number}\n" for at_s, number in orders))

        def sample(top: psutil.Process) -> None:
            for started_at in Path(temporary).glob("*/start_at"):
                if WARM_UP_S <= (now_us() - int(started_at.read_text())) / 1e6 <= WARM_UP_S + seconds:
                    samples.append((monotonic_s(), _cpu_s(top)))

        tailpack(temporary, sample, "run", "demo", "--trace", str(trace), "--out", temporary)
        result = Result.load(next(Path(temporary).glob("demo-*")))
    (whole,) = (stage for stage in result.stages if stage.stage == "end-to-end")
    latencies = {"end_to_end_p50_s": whole.p50_s, "end_to_end_p99_s": whole.p99_s, "in_sla": result.in_sla}
    return {"stage": "demo", "rate_per_s": rate} | _cores(samples) | latencies


def _cpu_s(top: psutil.Process) -> dict[tuple[int, str], float]:
    """Return pid and name of the process and its descendants → CPU time, s. A process that ends is left out."""
    found = {}
    for process in (top, *top.children(recursive=True)):
        with suppress(psutil.Error):
            module = MODULE.search(" ".join(process.cmdline()))
            name = next(filter(None, module.groups())) if module else PROCESSES[-1]
            found[process.pid, name] = sum(process.cpu_times()[:2])
    return found


def _cores(samples: Sequence[tuple[float, dict[tuple[int, str], float]]]) -> Row:
    (began_s, first), (ended_s, _) = samples[0], samples[-1]
    if "kafka" not in {name for _, name in first}:
        raise BenchError("the demo used the broker of `tailpack kafka start`; stop it, and measure again")
    last = {process: cpu_s for _, found in samples for process, cpu_s in found.items()}
    cores = dict.fromkeys(PROCESSES, 0.0)
    for (pid, name), cpu_s in last.items():
        cores[name] += (cpu_s - first.get((pid, name), 0.0)) / (ended_s - began_s)
    return {f"{name}_cores": round(each, 3) for name, each in cores.items()} | {"cores": round(sum(cores.values()), 3)}
