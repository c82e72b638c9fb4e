"""The numbers of a comparison: comparison.json, the one record that tables and the page are made from.

Runs of the report and policies of the simulator are compared in it alike. Names and units are those of single results;
differences are always one's own minus the reference's.
"""

from pathlib import Path
from typing import Final

import msgspec

from report import replace_file
from report.statistics import Against, Interval

COMPARISON_FILE: Final = "comparison.json"
COMPARISON_VERSION: Final = 1


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run that takes part."""

    run: str
    contestant: str
    """Label of whom it is a run of."""
    seed: int
    events: int
    in_sla: float
    p99_s: float | None
    p999_s: float | None
    replica_minutes: float
    bound_replica_minutes: float | None
    valid: bool
    commit: str


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one policy under the same settings: means, with 95 % intervals.

    Of several runs the intervals are over runs, of a single one over its seconds (`report.statistics.draw`).
    """

    label: str
    policy: str
    world: str
    """live or simulated."""
    runs: int
    in_sla: Interval
    p99_s: Interval | None
    p999_s: Interval | None
    replica_minutes: Interval
    on_front: bool
    """Nobody else keeps more events in SLA at the same cost, or as many at less."""


class SameEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs event by event. A pair has its place (partition and offset) and its intended time in common."""

    paired: int
    of: int
    """Events of the run that has more of them."""
    late_in_both: int
    late_only_here: int
    late_only_in_reference: int
    mean_difference_s: float | None
    """Of latencies, over pairs done in both."""


class RunDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant against the reference. None: not known on one side."""

    label: str
    reference: str
    over: str
    """What the intervals are over: `seeds` or `seconds`."""
    pairs: int
    """Runs of the same seed on both sides."""
    in_sla: Against | None
    p99_s: Against | None
    p999_s: Against | None
    replica_minutes: Against | None
    same_events: SameEvents | None
    """Of a single pair."""


class ScenarioCompared(msgspec.Struct, frozen=True, kw_only=True):
    """Everybody who met the same load."""

    scenario: str
    settings: tuple[str, ...]
    """What tells it from the other loads of this name, key=value."""
    latency_target_s: float
    percentile: float
    reference: str
    """Label of the contestant of the run that was named first."""
    bound_replica_minutes: float | None
    contestants: tuple[Contestant, ...]
    differences: tuple[RunDifference, ...]
    runs: tuple[ComparedRun, ...] = ()

    @property
    def title(self) -> str:
        """Return the scenario with what tells it from its namesakes."""
        return ", ".join([self.scenario, *self.settings])


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A whole comparison."""

    verdict: str
    scenarios: tuple[ScenarioCompared, ...]
    problems: tuple[str, ...]
    """Runs that do not stand, are missing, or could not be compared."""
    method: str
    """How the intervals were made, and what they do not tell."""
    command: str
    v: int = COMPARISON_VERSION

    def save(self, folder: Path) -> None:
        """Write folder/comparison.json; a reader never sees half of it."""
        replace_file(folder / COMPARISON_FILE, msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")

    @classmethod
    def load(cls, folder: Path) -> "RunComparison":
        """Read folder/comparison.json. Raises OSError or msgspec.DecodeError."""
        return msgspec.json.decode((folder / COMPARISON_FILE).read_bytes(), type=cls)
