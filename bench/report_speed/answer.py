"""What is asked of a run, and an answer to it. Whole numbers only, so two answers are equal or they are not."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from bench.simulation.folder import EVENTS
from report.run_info import RunInfo

RANKS: Final = (500_000, 900_000, 950_000, 990_000, 999_000, 999_900, 1_000_000)
"""Percentiles of the whole run, parts per million: those of the report, known here without importing Spark."""
SECOND_RANKS: Final = (500_000, 990_000, 1_000_000)
"""Percentiles of each second."""
Second = tuple[int, int, int | None, int | None, int | None]
"""Second of intent, events intended in it, and SECOND_RANKS of their latencies (µs; null where none was done)."""


class Way(StrEnum):
    """Who answers."""

    SPARK = "spark"
    """The report's transforms: the figures, and late events by cause."""
    WITHOUT_CAUSES = "spark-without-causes"
    """The figures alone: what the others are to be compared with."""
    WHOLE = "spark-whole"
    """The whole report with every breakdown, and its page."""
    PANDAS = "pandas"
    DUCKDB = "duckdb"


@dataclass(frozen=True, slots=True)
class Question:
    """A run, and where to think about it."""

    folder: Path
    run: RunInfo
    scratch: Path
    """Folder that may be written into."""
    master: str
    """Spark's."""
    jars: tuple[Path, ...]

    @property
    def events(self) -> Path:
        """Return the Parquet folder."""
        return self.folder / EVENTS

    @property
    def started_us(self) -> int:
        """Return when second 0 begins."""
        return self.run.started_us or 0

    @property
    def target_us(self) -> int:
        """Return the latency target."""
        return round(self.run.latency_target_s * 1e6)


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures that everybody is asked for. Lengths µs, percentiles nearest rank."""

    events: int
    """Not refused."""
    in_sla: int
    lost: int
    refused: int
    latency_us: tuple[int, ...]
    """At RANKS."""
    seconds: tuple[Second, ...]
    """By second."""
    done: tuple[tuple[int, int], ...]
    """Second, events done in it; by second."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What one process found out, and what it took."""

    figures: Figures | None
    """None of the whole report, which has them in result.json."""
    causes: dict[str, int] = {}
    """Cause → late events; empty where nobody asked."""
    peak_rss_bytes: int = 0
    """Of the process and its children: each one's own peak, added up."""
    version: str = ""
    """Of the engine."""

    def save(self, place: Path) -> None:
        """Write it to a file that is there only when it is whole."""
        temporary = place.with_name(place.name + ".tmp")
        temporary.write_bytes(msgspec.json.encode(self))
        temporary.replace(place)

    @classmethod
    def load(cls, place: Path) -> "Answer":
        """Read it. Raises OSError or msgspec.DecodeError."""
        return msgspec.json.decode(place.read_bytes(), type=cls)
