"""Trip records → a trace of events per second, and what became of every record."""

import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from aiokafka.partitioner import murmur2
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from bench.taxi.trips import SECOND_US, UNKNOWN_ZONE, ZONES, Month, files_of, read_trips
from contracts.validation import InvalidSettingsError
from loadgen.trace import MAX_EVENTS
from report.spark import ReportError, cause
from report.spark.session import LOG_FILE, open_session

ENDS: Final = {
    "both": ("picked_up_us", "dropped_off_us"), "pickup": ("picked_up_us",), "dropoff": ("dropped_off_us",),
}  # fmt: skip
MOST_CELLS: Final = 10_000_000
"""Seconds times partitions of a trace: what fits in memory as a table, and what its readers can take."""
TASKS_PER_MONTH: Final = 32
"""A task then holds half a million trips of a busy month, some 50 MB."""


@dataclass(frozen=True, slots=True)
class Request:
    """A trace of trips. Both events of a trip go to the same partition."""

    speed: Fraction = Fraction(40)
    """Seconds of the records that become one second of the trace."""
    partitions: int = 1
    by: Literal["uniform", "zone"] = "uniform"
    """Spread trips by a hash of the trip, or by the zone where it began: the key that Kafka's clients would hash."""
    ends: Literal["both", "pickup", "dropoff"] = "both"
    """Which ends of a trip are events."""
    month: Month | None = None
    """Of every file, whatever its name says."""
    duration_s: int | None = None
    """Keep only the first seconds of the trace."""

    def seconds(self, first: Month, last: Month) -> int:
        """Return the length of the trace. Raises InvalidSettingsError for what no trace can have."""
        if self.speed <= 0 or self.partitions < 1 or (self.by == "zone" and self.partitions == 1):
            raise InvalidSettingsError(
                [f"--speed {float(self.speed):g} --partitions {self.partitions}: more than 0, and --by zone needs 2"]
            )
        whole_s = math.ceil((last.ended_s - first.began_s) / self.speed)
        duration_s = whole_s if self.duration_s is None else self.duration_s
        if not 1 <= duration_s <= whole_s:
            raise InvalidSettingsError([f"--duration-s {duration_s}: the trace has 1 to {whole_s} s"])
        if duration_s * self.partitions > MOST_CELLS:
            raise InvalidSettingsError(
                [
                    f"{duration_s:,} seconds times {self.partitions:,} partitions are more than {MOST_CELLS:,} "
                    "numbers; raise --speed, or name a shorter --duration-s or fewer --partitions"
                ]
            )
        return duration_s


@dataclass(frozen=True, slots=True)
class Outcome:
    """A trace was built. rows = trips + all that was dropped; events + outside = trips times the events of each."""

    rows: int
    trips: int
    events: int
    """In the trace."""
    outside: int
    """Events of trips that were kept, after the last second of the trace."""
    duration_s: int
    partitions: int
    largest: int
    """Most events in one second, all partitions together."""
    hottest_share: float
    """Share of all events in the partition that has most of them."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Rule → rows left out by it: unreadable, other_month, backwards, duplicate."""


def build(paths: Sequence[str], out: Path, request: Request, master: str) -> Outcome:
    """Read trip records, write the trace to `out`, and return what became of the rows.

    Raises ReportError, and InvalidSettingsError for a trace that cannot be.
    """
    files = files_of(paths, request.month)
    months = list(files.values())
    duration_s = request.seconds(months[0], months[-1])
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        raise ReportError(f"--out {out}: is a folder, or the folder it is in cannot be written to")
    with tempfile.TemporaryDirectory() as folder:
        spark = open_session(master, (), Path(folder) / LOG_FILE, short=False)
        spark.conf.set("spark.sql.shuffle.partitions", str(TASKS_PER_MONTH * len(set(months))))
        by_zone = request.by == "zone"
        trips = reduce(DataFrame.union, (read_trips(spark, file, files[file], by_zone=by_zone) for file in files))
        try:
            broken = {row["broken"]: row["count"] for row in trips.groupBy("broken").count().collect()}
            once = trips.where("broken is null").drop("broken").distinct()
            counts, events = _counted(once, request, months[0].began_s, duration_s)
        except (PySparkException, Py4JError) as failed:
            raise ReportError(f"Spark could not read the trip records ({cause(failed)})") from failed
    kept = events // len(ENDS[request.ends])
    outcome = Outcome(
        rows=sum(broken.values()),
        trips=kept,
        events=int(counts.sum()),
        outside=events - int(counts.sum()),
        duration_s=duration_s,
        partitions=request.partitions,
        largest=int(counts.sum(axis=1).max()),
        hottest_share=float(counts.sum(axis=0).max() / max(1, counts.sum())),
        dropped={rule: broken.get(rule, 0) for rule in ("unreadable", "other_month", "backwards")}
        | {"duplicate": broken.get(None, 0) - kept},
    )
    if not outcome.events:
        raise ReportError(f"none of {outcome.rows:,} records makes an event of the trace: {outcome.dropped}")
    if (most := int(counts.max())) > MAX_EVENTS:
        raise ReportError(f"a second would have {most:,} events, {MAX_EVENTS:,} are allowed; lower --speed")
    _write(out, counts)
    return outcome


def _counted(trips: DataFrame, request: Request, began_s: int, duration_s: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return events, shape (seconds, partitions), and how many there are with those after the end of the trace.

    The second is the time since the beginning divided by the speed, rounded down, in whole numbers alone.
    """
    times = f.explode(f.array(*ENDS[request.ends])).alias("at_us")
    speed = request.speed
    since = f"(at_us - {began_s * SECOND_US}L) * {speed.denominator}L div {speed.numerator * SECOND_US}L"
    seconds = trips.select(times, _partition(request).alias("partition")).select(
        f.least(f.expr(since), f.lit(duration_s)).alias("second"), "partition"
    )
    found = seconds.groupBy("second", "partition").count().toArrow()
    counts = np.zeros((duration_s + 1, request.partitions), dtype=np.int64)
    places = tuple(found.column(name).to_numpy() for name in ("second", "partition"))
    counts[places] = found.column("count").to_numpy()
    return counts[:-1], int(counts.sum())


def _partition(request: Request) -> Column:
    if request.by == "uniform":
        return f.pmod(f.col("trip"), f.lit(request.partitions))
    return f.get(f.lit(partitions_of_zones(request.partitions)), f.col("zone"))


def partitions_of_zones(partitions: int) -> list[int]:
    """Return the partition of each zone, by its number: murmur2 of the text "zone 132", as Kafka's clients choose."""
    keys = (f"zone {number or UNKNOWN_ZONE}" for number in range(ZONES + 1))
    return [(murmur2(key.encode()) & 0x7FFFFFFF) % partitions for key in keys]


def _write(file: Path, counts: npt.NDArray[np.int64]) -> None:
    """Write counts, shape (seconds, partitions), as the text that `--trace` reads: whole or not at all."""
    names = ["events"] if counts.shape[1] == 1 else [f"p{partition}" for partition in range(counts.shape[1])]
    temporary = file.with_name(f".{file.name}.tmp")
    try:
        with temporary.open("w", encoding="ascii") as text:
            text.write(",".join(["second", *names]) + "\n")
            text.writelines(f"{second},{','.join(map(str, row))}\n" for second, row in enumerate(counts.tolist()))
        temporary.replace(file)
    except OSError as refused:
        raise ReportError(f"--out {file}: cannot be written ({refused.strerror})") from refused
    finally:
        temporary.unlink(missing_ok=True)
