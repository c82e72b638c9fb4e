"""How punctual the load generator is, and how many events a second it sends: by Kafka or HTTP, alone or by workers."""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from bench import BenchError
from bench.results import LoadgenRow
from contracts.children import last_log_line, python_module, start, wait_for_end
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.validation import as_environment
from loadgen.result import READY_FILE, RESULT_FILE, GeneratorResult
from loadgen.schedule import Spacing, Split
from loadgen.spec import DriverSettings, LoadSpec, Topology

PARTITIONS: Final = 5
TARGET_S: Final = 0.5
"""W; a load is on time while the p99 lateness is at most 5 % of it."""
PUNCTUAL_RATE: Final = 350
FLOOD: Final = {"kafka": 1_000_000, "http": 20_000}
"""Events of the load whose rate is sustained: ten seconds and more. HTTP: Order is behind it, on the same cores."""
QUICK_SHARE: Final = 0.1
"""Of them, in the quick form."""
TRIED: Final = (0.85, 0.6, 0.3)
"""Shares of the sustained rate; the quick form leaves the first out."""
ENTRIES: Final = tuple(FLOOD)
DEADLINE_S: Final = 60.0
AHEAD_US: Final = 500_000
"""From the start being told to second 0."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where loads are sent from and to."""

    connection: Connection
    order_url: str
    """Of an Order service on that Kafka, where orders are to enter by HTTP."""
    listen: str
    """A free HOST:PORT, for a master."""
    folder: Path


def measure(place: Place, entry: str, workers: int, *, quick: bool, announce: Callable[[str], None]) -> LoadgenRow:
    """Send steady loads by processes of their own. Raises BenchError."""
    loads = _Loads(place, entry, workers, announce)
    seconds = 3 if quick else 30
    even = loads.send(PUNCTUAL_RATE, seconds, Spacing.SMOOTH)
    bursts = loads.send(PUNCTUAL_RATE, seconds // 2, Spacing.BURST)
    flood = loads.send(round(FLOOD[entry] * (QUICK_SHARE if quick else 1)), 1, Spacing.BURST, overdue=True)
    assert flood.started_us is not None
    flood_s = (flood.ended_us - flood.started_us) / 1e6
    held = (int(round(flood.acknowledged / flood_s * one, -2)) for one in TRIED[quick:])
    return LoadgenRow(
        entry=entry,
        workers=workers,
        rate_per_s=PUNCTUAL_RATE,
        within_2ms=even.within_2ms or 0.0,
        lateness_p99_s=(even.lateness_p99_us or 0) / 1e6,
        bursts_within_2ms=bursts.within_2ms or 0.0,
        max_rate_per_s=round(flood.acknowledged / flood_s),
        sustained_s=round(flood_s, 1),
        on_time_per_s=next((rate for rate in held if rate and loads.send(rate, seconds, Spacing.SMOOTH).valid), 0),
    )


@dataclass(slots=True)
class _Loads:
    """Loads that are sent one after the other."""

    place: Place
    entry: str
    workers: int
    announce: Callable[[str], None]

    def send(self, rate: int, seconds: int, spacing: Spacing, *, overdue: bool = False) -> GeneratorResult:
        """Send so many events a second; return what the generator says of itself.

        overdue: second 0 is over when it hears of it, so that no event is made ready before its time.
        """
        self.announce(f"{self.entry}, {self.workers} at work: {rate:,} events/s, {spacing}")
        folder = self.place.folder / str(len(list(self.place.folder.iterdir())))
        folder.mkdir()
        self._write_load(folder, rate, seconds, spacing)
        with ExitStack() as running:
            shared = self.workers > 1
            told: dict[str, Any] = {
                "load_file": str(folder / "load.json"),
                "out_dir": str(folder),
                "start_file": str(folder / "start_at"),
                "workers": self.workers if shared else 0,
                "listen": self.place.listen,
            }
            process = self._start(running, folder / "generator.log", told)
            for number in range(self.workers if shared else 0):
                self._start(running, folder / f"worker-{number}.log", {"master": self.place.listen})
            deadline = time.monotonic() + seconds + DEADLINE_S
            started = False
            while process.poll() is None and time.monotonic() < deadline:
                if not started and (folder / READY_FILE).exists():
                    (folder / "start_at").write_text(str(now_us() + (0 if overdue else AHEAD_US)))
                    started = True
                time.sleep(0.02)
        if not (folder / RESULT_FILE).exists():
            raise BenchError(f"the generator did not send {rate:,} events/s: {last_log_line(folder / 'generator.log')}")
        result = GeneratorResult.load(folder)
        if result.first_error:
            raise BenchError(f"the generator did not send {rate:,} events/s: {result.first_error}")
        return result

    def _start(self, running: ExitStack, log: Path, told: dict[str, Any]) -> Any:
        """Start a process of the load, which ends with `running`."""
        url = self.place.order_url if self.entry == "http" else ""
        settings = DriverSettings(order_url=url, **told)
        environ = os.environ | as_environment(self.place.connection) | as_environment(settings)
        process = start(python_module("loadgen.drivers"), environ, log)
        running.callback(wait_for_end, process, 10)
        running.callback(process.terminate)
        return process

    def _write_load(self, folder: Path, rate: int, seconds: int, spacing: Spacing) -> None:
        trace = folder / "trace.csv"
        trace.write_text("second,events\n" + "".join(f"{second},{rate}\n" for second in range(seconds)))
        topology = Topology.PIPELINE if self.entry == "http" else Topology.PAYMENT_ONLY
        spec = LoadSpec(
            topology=topology, workload="w1", trace=str(trace), spacing=spacing, split=Split.EVEN,
            duration_s=seconds, partitions=PARTITIONS, latency_target_s=TARGET_S,
        )  # fmt: skip
        (folder / "load.json").write_bytes(msgspec.json.encode(spec))
