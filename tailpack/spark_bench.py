"""How fast the report is: the job as users get it, on a made-up run that lies in Kafka."""

import tempfile
import time
import uuid
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from bench.figures import KafkaReportRow, Origin
from contracts.connection import Connection
from report.result import Result
from report.spark.publishing import create_topics, publish, run_info
from report.spark.samples import MadeUpRun, made_up_run
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.local.jars import ensure
from tailpack.local.resources import ResourceMeter
from tailpack.report_job import judge

RATE: Final = 900.0
"""Events/s of the made-up run: close to what its five partitions serve, 1000 events/s, so that it has a tail."""
STARTED_US: Final = 1_700_000_000_000_000
SEED: Final = 1


def measure(events: int, origin: Origin, console: Console) -> KafkaReportRow:
    """Judge a made-up payment-only run of `events` events, two records each, and time it from start to exit.

    The start of Python and of the JVM is counted, the filling of Kafka is not. Memory is the PSS of both processes.
    Raises TailpackError when the job fails, or did not see every event.
    """
    ensure("spark", lambda said: console.print(said, highlight=False))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        folder.mkdir()
        broker = Broker(Path(temporary) / "kafka")
        try:
            connection = Connection(bootstrap_servers=broker.start(), namespace=f"report-{uuid.uuid4().hex[:8]}")
            with console.status(f"putting {events:,} made-up events on Kafka"):
                _fill(connection, made_up_run(events, rate=RATE, started_us=STARTED_US, seed=SEED), folder)
            with console.status(f"Spark judges {events:,} events"):
                wall_s, peak_mib = _judge(folder)
        finally:
            broker.stop()
        seen = _events_in(folder)
    if seen != events:
        raise TailpackError(f"the report saw {seen:,} of {events:,} events; its time would mean nothing")
    return KafkaReportRow(
        events=events,
        wall_s=round(wall_s, 2),
        events_per_s=round(events / wall_s, 1),
        peak_mib=round(peak_mib, 1),
        origin=origin,
    )


def _fill(connection: Connection, run: MadeUpRun, folder: Path) -> None:
    create_topics(connection)
    try:
        publish(connection, run, pipeline=False)
    except TimeoutError as slow:
        raise TailpackError(str(slow)) from slow
    run_info(connection, run, pipeline=False).save(folder)


def _judge(folder: Path) -> tuple[float, float]:
    """Return wall time in seconds and peak memory in MiB."""
    meter = ResourceMeter()
    began = time.monotonic()
    judge(folder, while_waiting=lambda processes: _sample(meter, processes))
    return time.monotonic() - began, meter.peak_mib


def _sample(meter: ResourceMeter, processes: dict[str, int]) -> None:
    meter.sample(processes, time.monotonic())


def _events_in(folder: Path) -> int:
    try:
        return Result.load(folder).events
    except (OSError, msgspec.DecodeError) as broken:
        raise TailpackError(
            f"the report job ended well, but left no result.json that can be read: {broken}"
        ) from broken
