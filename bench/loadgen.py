"""How punctual the load generator is, and how many events a second one process of it sends on time."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.processes import last_log_line, python_module, start, wait_for_end
from contracts.validation import as_environment
from loadgen.result import READY_FILE, RESULT_FILE, GeneratorResult
from loadgen.schedule import Spacing, Split
from loadgen.spec import DriverSettings, LoadSpec, Topology

PARTITIONS: Final = 5
TARGET_S: Final = 0.5
"""W; a load is on time while the p99 lateness is at most 5 % of it."""
PUNCTUAL_RATE: Final = 350
FLOOD: Final = 60_000
"""Events that are due at once."""
TRIED: Final = (0.85, 0.6, 0.3)
"""Shares of what is sent when everything is due at once."""
DEADLINE_S: Final = 60.0


class GeneratorError(Exception):
    """The generator did not send its load; says why."""


class GeneratorSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """One Locust process and an idempotent producer against one broker on this machine."""

    rate_per_s: int
    """At which it was punctual, …"""
    within_2ms: float
    """… this share of events, evenly spaced, within 2 ms of the intended time, …"""
    lateness_p99_s: float
    """… and all but 1 % within this."""
    bursts_within_2ms: float
    """The same share where all events of a second are due at once: the last ones wait for those before."""
    max_rate_per_s: int
    """Events/s made, sent and acknowledged while all are due: nothing is made ready beforehand."""
    on_time_per_s: int
    """The highest rate tried that was held, evenly spaced: p99 lateness within 5 % of 0.5 s. 0: none was."""


def measure(connection: Connection, folder: Path, *, quick: bool, announce: Callable[[str], None]) -> GeneratorSpeed:
    """Send steady loads through the generator's own process. Raises GeneratorError."""
    loads = _Loads(connection, folder, announce)
    seconds = 4 if quick else 60
    even = loads.send(PUNCTUAL_RATE, seconds, Spacing.SMOOTH)
    bursts = loads.send(PUNCTUAL_RATE, seconds // 2, Spacing.BURST)
    flood = loads.send(FLOOD, 1, Spacing.BURST)
    assert flood.started_us is not None
    flood_per_s = flood.acknowledged / ((flood.ended_us - flood.started_us) / 1e6)
    held = (round(flood_per_s * one, -2) for one in TRIED)
    return GeneratorSpeed(
        rate_per_s=PUNCTUAL_RATE,
        within_2ms=even.within_2ms or 0.0,
        lateness_p99_s=(even.lateness_p99_us or 0) / 1e6,
        bursts_within_2ms=bursts.within_2ms or 0.0,
        max_rate_per_s=round(flood_per_s),
        on_time_per_s=next((int(rate) for rate in held if loads.send(int(rate), seconds, Spacing.SMOOTH).on_time), 0),
    )


class _Loads:
    """Loads that are sent one after the other."""

    def __init__(self, connection: Connection, folder: Path, announce: Callable[[str], None]) -> None:
        self._connection = connection
        self._folder = folder
        self._announce = announce
        self._sent = 0

    def send(self, rate: int, seconds: int, spacing: Spacing) -> GeneratorResult:
        """Send so many events a second, as a process of its own does it; return what it says of itself."""
        self._sent += 1
        self._announce(f"{rate:,} events/s, {spacing}")
        folder = self._folder / str(self._sent)
        folder.mkdir()
        trace = folder / "trace.csv"
        trace.write_text("second,events\n" + "".join(f"{second},{rate}\n" for second in range(seconds)))
        spec = LoadSpec(
            topology=Topology.PAYMENT_ONLY, workload="w1", trace=str(trace), spacing=spacing, split=Split.EVEN,
            duration_s=seconds, partitions=PARTITIONS, latency_target_s=TARGET_S,
        )  # fmt: skip
        (folder / "load.json").write_bytes(msgspec.json.encode(spec))
        settings = DriverSettings(
            load_file=str(folder / "load.json"), out_dir=str(folder), start_file=str(folder / "start_at")
        )
        environ = os.environ | as_environment(self._connection) | as_environment(settings)
        log = folder / "generator.log"
        process = start(python_module("loadgen.drivers"), environ, log)
        try:
            deadline = time.monotonic() + seconds + DEADLINE_S
            started = False
            while process.poll() is None and time.monotonic() < deadline:
                if not started and (folder / READY_FILE).exists():
                    (folder / "start_at").write_text(str(now_us() + 500_000))
                    started = True
                time.sleep(0.02)
        finally:
            process.terminate()
            wait_for_end(process, 10)
        if not (folder / RESULT_FILE).exists():
            raise GeneratorError(f"the generator did not send {rate:,} events/s: {last_log_line(log)}")
        return GeneratorResult.load(folder)
