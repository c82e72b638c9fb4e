"""How fast the report is, and what answers the same questions faster: each way in fresh processes, one at a time."""

import hashlib
import importlib.util
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from bench import report_speed
from bench.figures import Alternative, Origin, SparkRow
from bench.report_speed.answer import Answer, Figures, Way
from report.run_info import RUN_FILE
from tailpack.errors import TailpackError
from tailpack.local.jars import cache_folder
from tailpack.report_job import job

SEED: Final = 1
MADE_BY: Final = ("made_up", "files")
"""Modules that the run is made by: other code makes another run."""
ALTERNATIVES: Final = (Way.PANDAS, Way.DUCKDB)
GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class Took:
    """One way, answered once. Wall time from the start of its process to its end."""

    wall_s: float
    answer: Answer


@dataclass(slots=True)
class Measurement:
    """What has been measured of one run so far."""

    events: int
    master: str
    taken: dict[Way, list[Took]] = field(default_factory=dict)

    def take(self, way: Way, folder: Path, say: Callable[[str], None] = lambda _: None) -> Took:
        """Let a way answer once more. Raises TailpackError when it fails, or answers something else than the others."""
        with tempfile.TemporaryDirectory() as scratch:
            place, began = Path(scratch) / "answer.json", time.monotonic()
            words, log = [way.value, str(folder), str(place)], Path(scratch) / "job.log"
            job(f"answer of {way}", "bench.report_speed.once", words, log, master=self.master, announce=say)
            took = Took(time.monotonic() - began, Answer.load(place))
        self._check(way, took.answer.figures)
        self.taken.setdefault(way, []).append(took)
        return took

    def row(self, origin: Origin) -> SparkRow | None:
        """Return the figures, medians where a way answered more than once; None before Spark has answered."""
        if Way.SPARK not in self.taken:
            return None
        first = self.taken[Way.SPARK][0].answer
        assert first.figures
        return SparkRow(
            events=self.events,
            **self._speed(Way.SPARK),
            in_sla=first.figures.in_sla / first.figures.events,
            late_by_cause=first.causes,
            wall_without_causes_s=self._wall_s(Way.WITHOUT_CAUSES),
            whole_wall_s=self._wall_s(Way.WHOLE),
            whole_peak_rss_gib=self._peak_rss_gib(Way.WHOLE),
            against=tuple(self._alternative(way) for way in ALTERNATIVES if way in self.taken),
            origin=origin,
        )

    def _alternative(self, way: Way) -> Alternative:
        return Alternative(engine=way.value, version=self.taken[way][0].answer.version, **self._speed(way))

    def _speed(self, way: Way) -> dict[str, Any]:
        """Return the figures that rows of every engine have."""
        rate = self.events / statistics.median(one.wall_s for one in self.taken[way])
        return {
            "wall_s": self._wall_s(way),
            "peak_rss_gib": self._peak_rss_gib(way),
            "events_per_s": round(rate, 1),
        }

    def _wall_s(self, way: Way) -> float | None:
        taken = self.taken.get(way)
        return round(statistics.median(one.wall_s for one in taken), 2) if taken else None

    def _peak_rss_gib(self, way: Way) -> float | None:
        """Return the highest of all rounds."""
        taken = self.taken.get(way)
        return round(max(one.answer.peak_rss_bytes for one in taken) / GIB, 3) if taken else None

    def _check(self, way: Way, figures: Figures | None) -> None:
        if figures is None:
            return
        if figures.events + figures.refused != self.events:
            seen = figures.events + figures.refused
            raise TailpackError(f"{way} saw {seen:,} of {self.events:,} events; its time would mean nothing")
        for other, taken in self.taken.items():
            known = taken[0].answer.figures
            if known is None or known == figures:
                continue
            names = [one for one in Figures.__struct_fields__ if getattr(known, one) != getattr(figures, one)]
            self.taken.clear()  # nobody knows which of them is wrong
            raise TailpackError(f"{way} and {other} answer differently ({', '.join(names)}); one of them is wrong")


def ways(*, whole: bool, against: Sequence[str]) -> list[Way]:
    """Return who is to answer, in order. Raises TailpackError for an alternative that is unknown or not installed."""
    if unknown := [name for name in against if name not in ALTERNATIVES]:
        raise TailpackError(f"--against {unknown[0]}: is unknown; known are {', '.join(ALTERNATIVES)}")
    if missing := [name for name in against if importlib.util.find_spec(name) is None]:
        raise TailpackError(f"{', '.join(missing)}: not installed; pip install {' '.join(missing)}")
    plain = [Way.WITHOUT_CAUSES] if against else []
    return [Way.SPARK, *plain, *(Way(name) for name in against), *([Way.WHOLE] if whole else [])]


def input_folder(events: int) -> Path:
    """Return where the run of this size is kept, whether it is there or not."""
    place = Path(report_speed.__file__).parent
    code = b"".join((place / f"{name}.py").read_bytes() for name in MADE_BY)
    return cache_folder() / "report" / f"{events}-{SEED}-{hashlib.blake2b(code, digest_size=4).hexdigest()}"


def ensure_input(events: int, passed: Callable[[int], None] = lambda _: None) -> Path:
    """Return the folder of a made-up run, which is made where this very code has not made it before.

    passed: told how many more events are written. Raises TailpackError where it cannot be written.
    """
    from bench.report_speed.made_up import make_up  # noqa: PLC0415  the simulator only where it is needed

    folder = input_folder(events)
    if (folder / RUN_FILE).exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
        try:
            make_up(temporary, events, SEED, passed)
            shutil.rmtree(folder, ignore_errors=True)
            temporary.rename(folder)
            for old in folder.parent.glob(f"{events}-{SEED}-{'[0-9a-f]' * 8}"):
                if old != folder:  # other code's: gigabytes that nobody asks for again
                    shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as full:
        raise TailpackError(f"{folder} cannot be written ({full.strerror or full})") from full
    return folder


def read_sizes(text: str) -> list[int]:
    """Read sizes separated by commas. Raises TailpackError for what is no positive whole number."""
    try:
        sizes = [int(word) for word in text.replace("_", "").split(",")]
    except ValueError as wrong:
        raise TailpackError(f"--sizes {text}: must be whole numbers, separated by commas") from wrong
    if min(sizes) < 1:
        raise TailpackError(f"--sizes {text}: a run has at least one event")
    return sizes


def as_json(row: SparkRow) -> dict[str, object]:
    """Return what a script reads: what was not asked for is left out, alternatives go by name."""
    against = {one.engine: one for one in row.against}
    told = msgspec.structs.asdict(row) | {"against": against or None}
    return {name: value for name, value in told.items() if value is not None}
