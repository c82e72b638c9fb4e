"""What the generator did: counts and its own lateness, written to generator.json."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from contracts.clock import now_us
from loadgen.shapes import IntArray

RESULT_FILE: Final = "generator.json"
READY_FILE: Final = "generator.ready"
"""Appears beside it when the generator is connected and waits for its start."""
PUNCTUAL_US: Final = 2_000
LATENESS_SHARE: Final = 0.05
"""A run is invalid when the generator's p99 lateness exceeds this share of W."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one process has sent, of the whole schedule or of its share."""

    produced: int
    acknowledged: int
    failed: int
    invalid_orders: int
    cpu_s: float
    interrupted: bool = False
    first_error: str | None = None
    lateness: bytes = b""
    """Send time − intended time of each event sent, µs: an array of 64-bit integers."""


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
    """Processor time of the generator's processes, without a master's."""
    workers: int = 0
    """Processes among which the schedule was split; 0: it was not."""
    clock_offset_us: int | None = None
    """By how much the clock of the worker that is furthest from its master was ahead or behind, before the start, as
    nearly as a round trip tells; None without workers."""
    first_error: str | None = None
    """First reason why an event failed or the run ended early."""

    @classmethod
    def of(
        cls,
        parts: Sequence[Part],
        *,
        scheduled: int,
        events: int,
        latency_target_s: float,
        started_us: int | None,
        error: str | None = None,
        interrupted: bool = False,
        workers: int = 0,
        clock_offset_us: int | None = None,
    ) -> "GeneratorResult":
        """Return what all parts together come to, now.

        scheduled: sends of `events` events. error: goes before what the parts say themselves.
        """
        lateness_us = np.frombuffer(b"".join(one.lateness for one in parts), np.int64)
        p99_us = lateness_percentile_us(lateness_us, 0.99)
        limit_us = lateness_limit_us(latency_target_s)
        acknowledged = sum(one.acknowledged for one in parts)
        first_error = error or next((one.first_error for one in parts if one.first_error), None)
        on_time = p99_us is not None and p99_us <= limit_us
        return cls(
            scheduled=scheduled,
            repeated=scheduled - events,
            produced=sum(one.produced for one in parts),
            acknowledged=acknowledged,
            failed=sum(one.failed for one in parts),
            invalid_orders=sum(one.invalid_orders for one in parts),
            interrupted=interrupted or any(one.interrupted for one in parts),
            started_us=started_us,
            ended_us=now_us(),
            lateness_p50_us=lateness_percentile_us(lateness_us, 0.5),
            lateness_p99_us=p99_us,
            lateness_max_us=lateness_percentile_us(lateness_us, 1.0),
            within_2ms=float(np.mean(lateness_us <= PUNCTUAL_US)) if len(lateness_us) else None,
            lateness_limit_us=limit_us,
            valid=on_time and acknowledged == scheduled and first_error is None,
            cpu_s=round(sum(one.cpu_s for one in parts), 3),
            workers=workers,
            clock_offset_us=clock_offset_us,
            first_error=first_error,
        )

    @property
    def complete(self) -> bool:
        """Every scheduled event was acknowledged."""
        return self.acknowledged == self.scheduled

    def save(self, folder: Path) -> None:
        """Write folder/generator.json; a reader never sees half of it."""
        temporary = folder / (RESULT_FILE + ".tmp")
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2))
        temporary.replace(folder / RESULT_FILE)

    @classmethod
    def load(cls, folder: Path) -> "GeneratorResult":
        """Read folder/generator.json. Raises OSError or msgspec.DecodeError."""
        return msgspec.json.decode((folder / RESULT_FILE).read_bytes(), type=cls)


def lateness_limit_us(latency_target_s: float) -> int:
    """Return the largest p99 lateness (µs) of a valid run. Example: W = 0.5 s → 25,000."""
    return round(latency_target_s * LATENESS_SHARE * 1e6)


def lateness_percentile_us(lateness_us: IntArray, percentile: float) -> int | None:
    """Return the nearest-rank percentile, None of nothing."""
    if not len(lateness_us):
        return None
    return int(np.quantile(lateness_us, percentile, method="inverted_cdf"))
