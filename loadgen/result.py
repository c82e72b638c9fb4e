"""What the generator did: counts and its own lateness, written to generator.json."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from loadgen.shapes import IntArray

RESULT_FILE: Final = "generator.json"
READY_FILE: Final = "generator.ready"
"""Appears beside it when the generator is connected and waits for its start."""
ON_TIME_US: Final = 2_000
LATENESS_SHARE: Final = 0.05
"""A run is invalid when the generator's p99 lateness exceeds this share of W."""


def part_file_name(file: str, part: int = 1, parts: int = 1) -> str:
    """Return the name of a process's file: `generator.json`, or `generator-2.json` with several parts."""
    stem, _, kind = file.partition(".")
    return file if parts == 1 else f"{stem}-{part}.{kind}"


def all_exist(folder: Path, file: str, parts: int = 1) -> bool:
    """Return whether every process of the load has written this file."""
    return all((folder / part_file_name(file, part, parts)).exists() for part in range(1, parts + 1))


class GeneratorResult(msgspec.Struct, frozen=True, kw_only=True):
    """Counts are events; times are µs. Lateness is send time − intended time, over the events produced."""

    scheduled: int
    repeated: int = 0
    """Of those, how many are sent a second time."""
    produced: int
    """Handed to the Kafka client."""
    acknowledged: int
    """Written to all in-sync replicas, as the broker confirmed."""
    failed: int
    """Given up by the Kafka client, or not confirmed before the generator stopped waiting."""
    invalid_orders: int
    """Of those produced, how many Order must refuse."""
    interrupted: bool
    """Stopped by a signal before the schedule's end."""
    started_us: int | None
    """Intended time of second 0, since the epoch; None where the start was never given."""
    ended_us: int
    lateness_p50_us: int | None
    lateness_p99_us: int | None
    lateness_max_us: int | None
    within_2ms: float | None = None
    """Share of them sent at most 2 ms late."""
    lateness_limit_us: int
    """5 % of W."""
    valid: bool
    """Nothing went wrong, every scheduled event was acknowledged, and the p99 lateness is within the limit."""
    cpu_s: float
    """Processor time of the generator's processes."""
    parts: int = 1
    """Processes among which the schedule was split. Their percentiles and maxima are those of the worst of them."""
    first_error: str | None = None
    """First reason why an event failed or the run ended early."""

    @classmethod
    def whole(cls, parts: "Sequence[GeneratorResult]") -> "GeneratorResult":
        """Return what all processes of a load have done."""
        if len(parts) == 1:
            return parts[0]

        def total(name: str) -> int:
            return sum(getattr(one, name) for one in parts)

        def worst(name: str, pick: Callable[[list[int]], int] = max) -> int | None:
            known = [value for one in parts if (value := getattr(one, name)) is not None]
            return pick(known) if known else None

        counts = ("scheduled", "repeated", "produced", "acknowledged", "failed", "invalid_orders")
        latest = ("lateness_p50_us", "lateness_p99_us", "lateness_max_us")
        on_time = sum((one.within_2ms or 0) * one.produced for one in parts)
        return msgspec.structs.replace(
            parts[0],
            **{name: total(name) for name in counts},
            **{name: worst(name) for name in latest},
            interrupted=any(one.interrupted for one in parts),
            started_us=worst("started_us", min),
            ended_us=worst("ended_us"),
            within_2ms=on_time / total("produced") if total("produced") else None,
            valid=all(one.valid for one in parts),
            cpu_s=round(sum(one.cpu_s for one in parts), 3),
            first_error=next((one.first_error for one in parts if one.first_error), None),
            parts=len(parts),
        )

    @property
    def complete(self) -> bool:
        """Every scheduled event was acknowledged."""
        return self.acknowledged == self.scheduled

    def save(self, folder: Path, part: int = 1, parts: int = 1) -> None:
        """Write folder/generator.json; a reader never sees half of it."""
        path = folder / part_file_name(RESULT_FILE, part, parts)
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2))
        temporary.replace(path)

    @classmethod
    def load(cls, folder: Path, parts: int = 1) -> "GeneratorResult":
        """Read the results of all parts in a folder. Raises OSError or msgspec.DecodeError."""
        files = [folder / part_file_name(RESULT_FILE, part, parts) for part in range(1, parts + 1)]
        return cls.whole([msgspec.json.decode(file.read_bytes(), type=cls) for file in files])


def lateness_limit_us(latency_target_s: float) -> int:
    """Return the largest p99 lateness (µs) of a valid run. Example: W = 0.5 s → 25,000."""
    return round(latency_target_s * LATENESS_SHARE * 1e6)


def lateness_percentile_us(lateness_us: IntArray, percentile: float) -> int | None:
    """Return the nearest-rank percentile, None of nothing."""
    if not len(lateness_us):
        return None
    return int(np.quantile(lateness_us, percentile, method="inverted_cdf"))
