"""How punctual the load generator is, and how many events per second it sends, by one process or by several."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from bench import BenchError
from bench.benchmark import Row, environ_of
from contracts.children import Child, ChildEndedError, python_module
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.validation import as_environment
from contracts.waiting import NotWithinError, until
from loadgen.result import READY_FILE, RESULT_FILE, GeneratorResult, all_exist
from loadgen.schedule import Spacing, Split
from loadgen.spec import DriverSettings, LoadSpec, Topology

TARGET_S: Final = 0.5
"""Latency target: a load is on time while the p99 of its lateness is at most 5 % of it."""
PUNCTUAL_RATE: Final = 350
FLOOD: Final = 1_000_000
"""Events that are all due at once, to find the highest rate; a tenth in the quick form."""
TRIED: Final = (0.85, 0.6, 0.3)
"""Shares of the highest rate that are sent evenly; the quick form leaves the first out."""
DEADLINE_S: Final = 60.0
AHEAD_US: Final = 500_000
"""From the note of the start to second 0."""


def send_loads(loads: "Loads", *, quick: bool) -> Row:
    """Send loads one after the other; return how punctual they were. Raises BenchError."""
    seconds = 3 if quick else 30
    even = loads.send(PUNCTUAL_RATE, seconds, Spacing.SMOOTH)
    bursts = loads.send(PUNCTUAL_RATE, seconds // 2, Spacing.BURST)
    flood = loads.send(FLOOD // 10 if quick else FLOOD, 1, Spacing.BURST, overdue=True)
    assert flood.started_us is not None
    flood_s = (flood.ended_us - flood.started_us) / 1e6
    tried = (int(round(flood.acknowledged / flood_s * share, -2)) for share in TRIED[quick:])
    return {
        "stage": "load",
        "workers": loads.workers,
        "rate_per_s": PUNCTUAL_RATE,
        "within_2ms": even.within_2ms or 0.0,
        "lateness_p99_s": (even.lateness_p99_us or 0) / 1e6,
        "bursts_within_2ms": bursts.within_2ms or 0.0,
        "max_rate_per_s": round(flood.acknowledged / flood_s),
        "sustained_s": round(flood_s, 1),
        "on_time_per_s": next((rate for rate in tried if rate and loads.send(rate, seconds, Spacing.SMOOTH).valid), 0),
    }


@dataclass(slots=True)
class Loads:
    """Loads that are sent one after the other, by processes of their own."""

    connection: Connection
    partitions: int
    folder: Path
    workers: int
    announce: Callable[..., None]

    def send(self, rate: int, seconds: int, spacing: Spacing, *, overdue: bool = False) -> GeneratorResult:
        """Send so many events per second; return the result of the generator.

        overdue: second 0 is over when the generator starts, so that no event is made ready before its time.
        """
        self.announce(said=f"{self.workers} at work: {rate:,} events/s, {spacing}")
        folder = self.folder / str(len(list(self.folder.iterdir())))
        folder.mkdir()
        self._write_load(folder, rate, seconds, spacing)
        start_file, give_up_s = folder / "start_at", seconds + DEADLINE_S
        with ExitStack() as running:
            parts = [self._start(running, folder, start_file, part) for part in range(1, self.workers + 1)]
            try:
                parts[-1].wait_until(lambda: all_exist(folder, READY_FILE, self.workers), DEADLINE_S, "ready")
            except (ChildEndedError, NotWithinError) as wrong:
                raise BenchError(str(wrong)) from wrong
            start_file.write_text(str(now_us() + (0 if overdue else AHEAD_US)))
            until(lambda: all(part.exit_status is not None for part in parts), give_up_s, "the load is sent")
        sent = all_exist(folder, RESULT_FILE, self.workers)
        result = GeneratorResult.load(folder, self.workers) if sent else None
        if result is None or result.first_error:
            why = result.first_error if result else "; ".join(part.ending() for part in parts)
            raise BenchError(f"the generator did not send {rate:,} events/s: {why}")
        return result

    def _start(self, running: ExitStack, folder: Path, start_file: Path, part: int) -> Child:
        """Start a process of the load, which ends with `running`."""
        settings = DriverSettings(
            load_file=str(folder / "load.json"),
            out_dir=str(folder),
            start_file=str(start_file),
            parts=self.workers,
            part=part,
        )
        environ = environ_of(self.connection) | as_environment(settings)
        log = folder / f"generator-{part}.log"
        child = Child(log.stem, python_module("loadgen.drivers"), environ, log)
        child.start()
        running.callback(child.stop)
        return child

    def _write_load(self, folder: Path, rate: int, seconds: int, spacing: Spacing) -> None:
        trace = folder / "trace.csv"
        trace.write_text("second,events\n" + "".join(f"{second},{rate}\n" for second in range(seconds)))
        spec = LoadSpec(
            topology=Topology.PAYMENT_ONLY, workload="w1", trace=str(trace), spacing=spacing, split=Split.EVEN,
            duration_s=seconds, partitions=self.partitions, latency_target_s=TARGET_S,
        )  # fmt: skip
        (folder / "load.json").write_bytes(msgspec.json.encode(spec))
