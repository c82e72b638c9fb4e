"""What every part of the judgement must know of the run."""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f

SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Terms:
    """Times are µs since the epoch, lengths µs."""

    started_us: int
    """Second 0."""
    target_us: int
    """The latency target."""
    shown_s: int
    """Seconds that series cover: the workload and the drain after it."""

    def second(self, column: str) -> Column:
        """Return the second of the run in which the time in `column` lies; whole numbers, before the start negative."""
        since = f"({column} - {self.started_us})"
        return f.expr(f"{since} div {SECOND_US} - if({since} % {SECOND_US} < 0, 1, 0)")

    def late(self) -> Column:
        """Return whether an event took longer than the target, or was never done."""
        return f.coalesce(latency() > self.target_us, f.lit(True))


def latency() -> Column:
    """Return how long an event took, µs: from when it was intended until it was done; null: never done."""
    return f.col("done_us") - f.col("intended_us")


def accounted() -> Column:
    """Return whether an event counts: whatever was not refused does."""
    return f.col("done_us").isNotNull() | (f.col("dead_letters") == 0)
