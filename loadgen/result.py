"""The result of the generator: counts of events and its own lateness. It is written to generator.json."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from loadgen.shapes import IntArray

RESULT_FILE: Final = "generator.json"
READY_FILE: Final = "generator.ready"
"""File next to the load file, written when the generator is connected and waits for its start."""
LATENESS_SHARE: Final = 0.05
"""A run is invalid if the generator's p99 lateness exceeds this share of W."""


def part_file_name(file: str, part: int = 1, parts: int = 1) -> str:
    """Return the file name of one process: `generator.json`, or `generator-2.json` with several parts."""
    stem, _, kind = file.partition(".")
    return file if parts == 1 else f"{stem}-{part}.{kind}"


class GeneratorResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a load. Counts are in events, times in µs. Lateness is the send time minus the intended time."""

    scheduled: int
    repeated: int = 0
    """Scheduled events that are sent a second time."""
    produced: int
    """Events passed to the client (Kafka or HTTP)."""
    acknowledged: int
    """Events that the broker confirmed as written to all in-sync replicas."""
    failed: int
    """Events dropped by the client, or not confirmed before the generator stopped waiting."""
    invalid_orders: int
    """Produced events that Order must refuse."""
    interrupted: bool
    """Whether a signal stopped the generator before the end of the schedule."""
    started_us: int | None
    """Intended time of second 0, µs since the epoch. None: the run never started."""
    ended_us: int
    lateness_p50_us: int | None
    lateness_p99_us: int | None
    lateness_max_us: int | None
    lateness_limit_us: int
    """5 % of W."""
    valid: bool
    """Whether all scheduled events were acknowledged without an error and the p99 lateness is within the limit."""
    cpu_s: float
    """Processor time of the generator's processes."""
    parts: int = 1
    """Number of processes that shared the schedule. Percentiles and maxima are those of the worst process."""
    first_error: str | None = None
    """First error of an event, or the reason of an early end."""

    @classmethod
    def combine(cls, parts: "Sequence[GeneratorResult]") -> "GeneratorResult":
        """Return the combined result of all processes of a load."""
        if len(parts) == 1:
            return parts[0]

        def total(name: str) -> int:
            return sum(getattr(part, name) for part in parts)

        def worst(name: str, pick: Callable[[list[int]], int] = max) -> int | None:
            values = [value for part in parts if (value := getattr(part, name)) is not None]
            return pick(values) if values else None

        counts = ("scheduled", "repeated", "produced", "acknowledged", "failed", "invalid_orders")
        latest = ("lateness_p50_us", "lateness_p99_us", "lateness_max_us")
        return msgspec.structs.replace(
            parts[0],
            **{name: total(name) for name in counts},
            **{name: worst(name) for name in latest},
            interrupted=any(part.interrupted for part in parts),
            started_us=worst("started_us", min),
            ended_us=worst("ended_us"),
            valid=all(part.valid for part in parts),
            cpu_s=round(sum(part.cpu_s for part in parts), 3),
            first_error=next((part.first_error for part in parts if part.first_error), None),
            parts=len(parts),
        )

    @property
    def complete(self) -> bool:
        """Whether every scheduled event was acknowledged."""
        return self.acknowledged == self.scheduled

    def save(self, folder: Path, part: int = 1, parts: int = 1) -> None:
        """Write folder/generator.json atomically."""
        path = folder / part_file_name(RESULT_FILE, part, parts)
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2))
        temporary.replace(path)

    @classmethod
    def load(cls, folder: Path, parts: int = 1) -> "GeneratorResult":
        """Read the results of all parts in a folder. Raises OSError or msgspec.DecodeError."""
        files = [folder / part_file_name(RESULT_FILE, part, parts) for part in range(1, parts + 1)]
        return cls.combine([msgspec.json.decode(file.read_bytes(), type=cls) for file in files])


def lateness_limit_us(latency_target_s: float) -> int:
    """Return the largest p99 lateness (µs) of a valid run. Example: W = 0.5 s → 25,000."""
    return round(latency_target_s * LATENESS_SHARE * 1e6)


def lateness_percentile_us(lateness_us: IntArray, percentile: float) -> int | None:
    """Return the nearest-rank percentile (0 to 1) of the lateness, or None for an empty array."""
    if not len(lateness_us):
        return None
    return int(np.quantile(lateness_us, percentile, method="inverted_cdf"))
