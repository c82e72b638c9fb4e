"""Measure how punctually the load generator sends, and its highest rate, with one or several processes."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from bench import BenchError
from bench.benchmark import Row, all_exist, check, environ_of
from contracts.children import Child, python_module
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.waiting import until
from loadgen.result import READY_FILE, RESULT_FILE, GeneratorResult
from loadgen.schedule import Spacing, Split
from loadgen.spec import LoadSpec, Topology

TARGET_S: Final = 0.5
"""Latency target. A load is on time if the p99 of its lateness is at most 5 % of the target."""
PUNCTUAL_RATE: Final = 350
FLOOD_EVENTS: Final = 1_000_000
"""Number of events that are due at the same time, to measure the highest rate; with `quick` a tenth of it."""
TRIED_RATE_SHARES: Final = (0.85, 0.6, 0.3)
"""Shares of the highest rate at which an even load is then tried; `quick` skips the first share."""
DEADLINE_S: Final = 60.0
START_FILE: Final = "start_at"
START_LEAD_US: Final = 500_000
"""Time from the moment at which START_FILE is written until second 0."""


@dataclass(frozen=True, slots=True)
class EvenLoad:
    """The same number of events each second, sent to the partitions in turn."""

    rate: int
    seconds: int
    partitions: int
    spacing: Spacing = Spacing.SMOOTH
    linger_ms: float = 2.0

    def generators(self, connection: Connection, folder: Path, parts: int = 1) -> list[Child]:
        """Return the generator processes, not started yet.

        They begin at the time (µs since 1970) in START_FILE. This file and all results are in `folder`.
        """
        load = folder / "load.json"
        spec = LoadSpec(
            topology=Topology.PAYMENT_ONLY, workload=f"{self.rate} for 1", spacing=self.spacing, split=Split.EVEN,
            duration_s=self.seconds, partitions=self.partitions, latency_target_s=TARGET_S,
        )  # fmt: skip
        load.write_bytes(msgspec.json.encode(spec))
        files = {"load_file": load, "out_dir": folder, "start_file": folder / START_FILE}
        return [
            Child(
                f"generator-{part}",
                python_module("loadgen.drivers"),
                environ_of(connection, **files, linger_ms=self.linger_ms, parts=parts, part=part),
                folder / f"generator-{part}.log",
            )
            for part in range(1, parts + 1)
        ]


@dataclass(slots=True)
class Loads:
    """Sends several loads in sequence. New processes send each load."""

    connection: Connection
    partitions: int
    folder: Path
    workers: int
    announce: Callable[..., None]

    def measure(self, *, quick: bool) -> Row:
        """Send several loads; return their rates and punctuality. Raises BenchError."""
        seconds = 3 if quick else 30
        even = self._send(PUNCTUAL_RATE, seconds)
        bursts = self._send(PUNCTUAL_RATE, seconds // 2, Spacing.BURST)
        flood = self._send(FLOOD_EVENTS // 10 if quick else FLOOD_EVENTS, 1, Spacing.BURST, overdue=True)
        assert flood.started_us is not None
        flood_s = (flood.ended_us - flood.started_us) / 1e6
        rates = (int(round(flood.acknowledged / flood_s * share, -2)) for share in TRIED_RATE_SHARES[quick:])
        return {
            "stage": "load",
            "workers": self.workers,
            "rate_per_s": PUNCTUAL_RATE,
            "within_2ms": even.within_2ms or 0.0,
            "lateness_p99_s": (even.lateness_p99_us or 0) / 1e6,
            "bursts_within_2ms": bursts.within_2ms or 0.0,
            "max_rate_per_s": round(flood.acknowledged / flood_s),
            "sustained_s": round(flood_s, 1),
            "on_time_per_s": next((rate for rate in rates if rate and self._send(rate, seconds).valid), 0),
        }

    def _send(
        self, rate: int, seconds: int, spacing: Spacing = Spacing.SMOOTH, *, overdue: bool = False
    ) -> GeneratorResult:
        """Send `rate` events/s; return the result of the generator.

        overdue: whether second 0 has passed when the generator starts, so that it cannot prepare events in advance.
        """
        self.announce(status=f"{self.workers} processes: {rate:,} events/s, {spacing}")
        folder = self.folder / str(len(list(self.folder.iterdir())))
        folder.mkdir()
        parts = EvenLoad(rate, seconds, self.partitions, spacing).generators(self.connection, folder, self.workers)
        with ExitStack() as running:
            for part in parts:
                part.start()
                running.callback(part.wait)
                running.callback(part.terminate)  # called first
            until(lambda: check(parts) and all_exist(folder, READY_FILE, self.workers), DEADLINE_S, "the load is ready")
            (folder / START_FILE).write_text(str(now_us() + (0 if overdue else START_LEAD_US)))
            ended = lambda: all(part.exit_status is not None for part in parts)  # noqa: E731
            until(ended, seconds + DEADLINE_S, "the load is sent")
        result = GeneratorResult.load(folder, self.workers) if all_exist(folder, RESULT_FILE, self.workers) else None
        if result is None or result.first_error:
            why = result.first_error if result else "; ".join(part.ending() for part in parts)
            raise BenchError(f"the generator did not send {rate:,} events/s: {why}")
        return result
