"""How fast the report is: the job as users get it, on a made-up run that lies in files or in Kafka."""

import shutil
import tempfile
import time
import uuid
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from bench.report_speed.made_up import PARTITIONS, make_up
from bench.report_speed.topics import publish
from bench.results import KafkaReportRow, Origin, SparkRow
from bench.simulation.folder import EVENTS, JOURNAL
from contracts.connection import Connection
from report.result import Result
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.local.jars import ensure
from tailpack.local.resources import ResourceMeter
from tailpack.report_job import write_report

SEED: Final = 1


def from_files(events: int, origin: Origin, console: Console) -> SparkRow:
    """Report on a made-up run of `events` events that lies in Parquet files. Raises TailpackError as `_reported`."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with console.status(f"making a run of {events:,} events"):
            make_up(folder, events, SEED)
        result, wall_s, peak_mib = _reported(folder, events, console)
    return SparkRow(
        events=events,
        wall_s=round(wall_s, 2),
        peak_rss_gib=round(peak_mib / 1024, 3),
        events_per_s=round(events / wall_s, 1),
        in_sla=result.in_sla,
        late_by_cause={one.cause: one.events for one in result.tail.causes} if result.tail else {},
        origin=origin,
    )


def from_kafka(events: int, origin: Origin, console: Console) -> KafkaReportRow:
    """Report on a made-up run of `events` events that lies on a broker of its own, two records each.

    The filling of Kafka is not timed. Raises TailpackError as `_reported` does, and where Kafka is too slow.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        broker = Broker(Path(temporary) / "kafka")
        try:
            connection = Connection(bootstrap_servers=broker.start(), namespace=f"report-{uuid.uuid4().hex[:8]}")
            with console.status(f"putting {events:,} made-up events on Kafka"):
                run = make_up(folder, events, SEED)
                publish(folder, connection, PARTITIONS)
            for name in (EVENTS, JOURNAL):
                shutil.rmtree(folder / name)
            address = connection.bootstrap_servers
            msgspec.structs.replace(run, run=connection.namespace, bootstrap_servers=address).save(folder)
            _, wall_s, peak_mib = _reported(folder, events, console)
        except TimeoutError as slow:
            raise TailpackError(str(slow)) from slow
        finally:
            broker.stop()
    return KafkaReportRow(
        events=events,
        wall_s=round(wall_s, 2),
        events_per_s=round(events / wall_s, 1),
        peak_mib=round(peak_mib, 1),
        origin=origin,
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
