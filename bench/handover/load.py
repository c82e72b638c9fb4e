"""The load of the benchmarks that change a serving group: the same number of events each second."""

from pathlib import Path
from typing import Final

import msgspec

from bench.benchmark import environ_of
from contracts.children import Child, python_module
from contracts.connection import Connection
from loadgen.schedule import Spacing, Split
from loadgen.spec import LoadSpec, Topology

TARGET_S: Final = 0.5
"""Latency target. A load is on time if the p99 of its lateness is at most 5 % of the target."""
START_FILE: Final = "start_at"
START_LEAD_US: Final = 500_000
"""Time from the moment at which START_FILE is written until second 0."""


def load_generator(connection: Connection, folder: Path, *, rate: int, seconds: int, partitions: int) -> Child:
    """Return the process that sends `rate` events/s to the partitions in turn, not started yet.

    It begins at the time (µs since 1970) in START_FILE. This file and its result are in `folder`.
    """
    load = folder / "load.json"
    spec = LoadSpec(
        topology=Topology.PAYMENT_ONLY, workload=f"{rate} for 1", spacing=Spacing.SMOOTH, split=Split.EVEN,
        duration_s=seconds, partitions=partitions, latency_target_s=TARGET_S,
    )  # fmt: skip
    load.write_bytes(msgspec.json.encode(spec))
    files = {"load_file": load, "out_dir": folder, "start_file": folder / START_FILE}
    environ = environ_of(connection, **files, linger_ms=0)
    return Child("generator", python_module("loadgen.drivers"), environ, folder / "generator.log")
