"""The numbers of a comparison: comparison.json, the one record that tables and the page are made from.

Runs of the report and policies of the simulator are compared in it alike. Names and units are those of single results;
differences are always one's own minus the reference's.
"""

from pathlib import Path
from typing import Final

import msgspec

from report import replace_file
from report.statistics import Against, Interval
from report.wording import dearer, duration, longer, minutes, points, share

COMPARISON_FILE: Final = "comparison.json"
COMPARISON_VERSION: Final = 2
MOST_SAID: Final = 3
"""Differences that a verdict says; the table says all."""


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one policy under the same settings: means with 95 % intervals, and differences from the reference.

    Of several runs the intervals are over runs, of a single one over its seconds (`report.statistics.draw`). None: not
    known, and differences of the reference itself.
    """

    label: str
    policy: str
    world: str
    """live or simulated."""
    runs: int
    pairs: int = 0
    """Of them, those that meet one of the reference with the same seed."""
    in_sla: Interval
    in_sla_difference: Against | None = None
    p99_s: Interval | None
    p99_difference_s: Against | None = None
    p999_s: Interval | None
    p999_difference_s: Against | None = None
    replica_minutes: Interval
    replica_minutes_difference: Against | None = None
    on_front: bool
    """Nobody else keeps more events in SLA at the same cost, or as many at less."""


class ScenarioCompared(msgspec.Struct, frozen=True, kw_only=True):
    """Everybody who met the same load."""

    scenario: str
    settings: tuple[str, ...]
    """What tells it from the other loads of this name, key=value."""
    latency_target_s: float
    percentile: float
    reference: str
    """Label of the contestant of the run that was named first."""
    packing_replica_minutes: float | None
    contestants: tuple[Contestant, ...]

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


def verdict(one: ScenarioCompared) -> str:
    """Return who keeps the promise and for how much, and which differences are more than chance."""
    promise = f"{share(one.percentile)} within {duration(one.latency_target_s)}"
    keep = sorted(
        (each.replica_minutes.mean, each.label) for each in one.contestants if each.in_sla.mean >= one.percentile
    )
    best = max(one.contestants, key=lambda each: each.in_sla.mean)
    said = f"{one.title}: nobody keeps {promise}; {best.label} comes closest with {share(best.in_sla.mean)}."
    if keep:
        said = (
            f"{one.title}: {len(keep)} of {len(one.contestants)} keep {promise}, {keep[0][1]} for the least "
            f"({minutes(keep[0][0])} replica-minutes)."
        )
    others = [each for each in one.contestants if each.pairs]
    if len(others) > MOST_SAID:
        return said
    return " ".join([said, *(f"{each.label} against {one.reference}: {_told(each)}." for each in others)])


def _told(one: Contestant) -> str:
    differences = (
        ("{} in time", one.in_sla_difference, points),
        ("p99 {}", one.p99_difference_s, longer),
        ("p99.9 {}", one.p999_difference_s, longer),
        ("{} replica-minutes", one.replica_minutes_difference, dearer),
    )
    told = [text.format(say(found.mean)) for text, found, say in differences if found and found.distinguishable]
    return ", ".join(told) or "not distinguishable"
