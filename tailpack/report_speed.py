"""How fast the report is: the job as users get it, on a made-up run that lies in files."""

import tempfile
import time
from pathlib import Path
from typing import Final

from rich.console import Console

from bench.made_up import as_noted, made_up
from bench.results import SparkRow
from bench.simulation.folder import write_run
from report.result import Result
from tailpack.errors import TailpackError
from tailpack.local.jars import ensure
from tailpack.local.resources import ResourceMeter
from tailpack.provenance import describe_simulated
from tailpack.report_job import write_report

SEED: Final = 1


def measure(events: int, console: Console) -> SparkRow:
    """Report on a made-up run of `events` events that lies in Parquet files. Raises TailpackError as `_reported`."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with console.status(f"making a run of {events:,} events"):
            scenario, sent, run = made_up(events, SEED)
            info = describe_simulated(scenario, sent, run.drained_us, folder)
            write_run(folder, run, info, as_noted(run, SEED))
        result, wall_s, peak_mib = _reported(folder, events, console)
    return SparkRow(
        events=events,
        wall_s=round(wall_s, 2),
        peak_rss_gib=round(peak_mib / 1024, 3),
        events_per_s=round(events / wall_s, 1),
        in_sla=result.in_sla,
        late_by_cause={one.cause: one.events for one in result.tail.causes} if result.tail else {},
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
