"""From the folders of runs that met one load to their comparison: estimates, differences, the front.

Over seeds where there are several pairs; over the seconds of both runs where there is one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from contracts.journal import ReplicaChanged, entries
from contracts.validation import InvalidSettingsError
from report import history
from report.comparison import Contestant, RunComparison, ScenarioCompared, verdict
from report.result import RESULT_FILE, Result
from report.run_info import EVENTS, FORESEEING, JOURNAL, RUN_FILE, RunInfo, stored_columns
from report.statistics import (
    Cells,
    Drawn,
    Interval,
    bootstrap_interval,
    cell_length_s,
    cut_into_cells,
    draw,
    drawn_difference,
    drawn_interval,
    paired_difference,
    pareto_front,
)
from report.wording import share

DIFFERENCES: Final = {
    "in_sla": "in_sla_difference",
    "p99_s": "p99_difference_s",
    "p999_s": "p999_difference_s",
    "replica_minutes": "replica_minutes_difference",
}
"""Measure, in results, contestants and `Drawn` → the contestant's difference in it from the reference."""
METHOD: Final = (
    "Intervals hold 95 % of 10,000 seeded bootstrap draws; where one holds 0, the two are not distinguishable. Over "
    "seeds, pairs of runs of one seed are drawn: how further seeds would come out; fewer than six pairs span little "
    "more than what was seen. Over the seconds of a lone pair, blocks of seconds are drawn, the same of both: whether "
    "a difference would stand had other seconds like these been met, not how another run, machine or day would differ."
)
LOAD: Final = ("name", "duration_s", "load.workload", "load.spacing", "payment.partitions", "target.latency_target_s")
"""Settings that must agree: with others, other events come, or another promise is made."""
UNTOLD: Final = frozenset({"description", "topology", "seed", "autoscaler.policy", "target.percentile", *LOAD})
"""Settings that labels do not repeat."""
SIMULATION: Final = "simulation."
"""Settings that a live run has, and does not use."""


@dataclass(frozen=True)
class Entrant:
    """A run that is to be compared."""

    folder: Path
    info: RunInfo
    result: Result

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Dotted key → value of all that the run was told."""
        live = self.info.world == "live"
        return {key: value for key, value in _flat(self.info.scenario) if not (live and key.startswith(SIMULATION))}

    @cached_property
    def cells(self) -> Cells:
        """Its seconds. Raises InvalidSettingsError where its events are not there."""
        result, started_us = self.result, self.result.provenance.started_us
        told = stored_columns(self.folder, EVENTS, ("intended_us", "done_us", "dead_letters"))
        intended_us, done = told["intended_us"] - started_us, ~np.isnan(told["done_us"].astype(np.float64))
        journal = stored_columns(self.folder, JOURNAL, ("entry",))["entry"]
        paid = history.paid(history.only(entries(journal), ReplicaChanged))
        length_s = cell_length_s(result.duration_s)
        limits_s = np.minimum(np.arange(0, round(result.duration_s) + length_s, length_s), result.duration_s)
        limits_us = (started_us + np.round(limits_s * 1e6)).astype(np.int64).tolist()
        return cut_into_cells(
            intended_us[done],
            told["done_us"][done].astype(np.int64) - told["intended_us"][done],
            np.array([60 * history.replica_minutes(paid, *between) for between in pairwise(limits_us)]),
            length_s=length_s,
            latency_target_s=result.latency_target_s,
            floor_us=round((result.p50_s or 0.0) * 1e6),
            never_done_us=intended_us[~done & (told["dead_letters"] == 0)],
        )

    @cached_property
    def drawn(self) -> Drawn:
        """Its figures, had other seconds like its own been met."""
        return draw(self.cells)


Contestants = Mapping[str, Sequence[Entrant]]
"""Label → runs, in the order in which they were named; the first is the reference."""
Pair = tuple[Entrant, Entrant]
"""A run, and the one of the reference that it meets."""


def entrant(folder: Path) -> Entrant:
    """Return the run in `folder`. Raises InvalidSettingsError for one that cannot be compared."""
    try:
        one = Entrant(folder, RunInfo.load(folder), Result.load(folder))
    except (OSError, msgspec.DecodeError) as broken:
        raise InvalidSettingsError([f"{folder}: {RUN_FILE} or {RESULT_FILE} cannot be read ({broken})"]) from broken
    if one.result.replica_minutes is None:
        raise InvalidSettingsError([f"{folder}: a run without journal has no replica-minutes, so no cost to compare"])
    return one


def compare(folders: Iterable[Path], *, command: str) -> RunComparison:
    """Compare runs that met the same load and have a report. Raises InvalidSettingsError where that cannot be."""
    entrants = [entrant(folder) for folder in dict.fromkeys(folder.resolve() for folder in folders)]
    first = entrants[0].settings
    for one in entrants:
        if other := [
            f"{key} is {one.settings.get(key)}, not {first.get(key)}"
            for key in LOAD
            if one.settings.get(key) != first.get(key)
        ]:
            raise InvalidSettingsError([f"{one.folder}: it met another load than the first ({', '.join(other)})"])
    contestants = labelled(entrants)
    if len(contestants) == 1:
        raise InvalidSettingsError(["nothing to compare: these runs differ in no policy and no setting"])
    found = _compared(contestants)
    return RunComparison(
        verdict=verdict(found),
        scenarios=(found,),
        problems=tuple(_problems(contestants)),
        method=METHOD,
        command=command,
    )


def _problems(contestants: Contestants) -> Iterator[str]:
    """Yield why something does not stand or could not be compared."""
    for one in (one for runs in contestants.values() for one in runs):
        if not one.result.valid:
            yield f"{one.result.run}: not a valid measurement, because {' and '.join(one.result.problems)}"
    reference, *others = contestants
    for label in others:
        pairs = _pairs(contestants, label)
        if not pairs:
            yield f"{label} and {reference} have no seed in common"
        elif len(pairs) == 1:
            here, there = (one.cells.events for one in pairs[0])
            same = int(np.minimum(here, there).sum()) / max(1, int(np.maximum(here.sum(), there.sum())))
            if same < 1:
                yield (
                    f"{pairs[0][0].result.run} and {pairs[0][1].result.run} did not meet the same events: "
                    f"{share(same)} of them were intended in the same seconds"
                )


def _compared(contestants: Contestants) -> ScenarioCompared:
    reference, first = next(iter(contestants.items()))
    estimates = {label: _estimates(runs) for label, runs in contestants.items()}
    front = _front(contestants, estimates)
    return ScenarioCompared(
        scenario=first[0].result.scenario,
        settings=(),
        latency_target_s=first[0].result.latency_target_s,
        percentile=first[0].result.percentile,
        reference=reference,
        packing_replica_minutes=first[0].result.cost.packing_replica_minutes if first[0].result.cost else None,
        contestants=tuple(
            Contestant(
                label=label,
                policy=runs[0].info.policy,
                world=runs[0].info.world,
                runs=len(runs),
                on_front=label in front,
                **estimates[label],
                **({} if label == reference else _differences(_pairs(contestants, label))),
            )
            for label, runs in contestants.items()
        ),
    )


def _estimates(runs: Sequence[Entrant]) -> dict[str, Any]:
    """Return mean and interval of each measure; None where it is not known of every run."""
    found: dict[str, Interval | None] = {}
    for name in DIFFERENCES:
        values = [getattr(one.result, name) for one in runs]
        if None in values:
            found[name] = None
        elif len(values) > 1:
            found[name] = bootstrap_interval(values)
        else:
            found[name] = drawn_interval(values[0], getattr(runs[0].drawn, name))
    return found


def _differences(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return how many pairs there are, and mean and interval of what each measure differs by, as `_estimates` does."""
    found: dict[str, Any] = {"pairs": len(pairs)}
    for name, difference in DIFFERENCES.items() if pairs else ():
        ours, theirs = ([getattr(one.result, name) for one in side] for side in zip(*pairs, strict=True))
        if None in {*ours, *theirs}:
            found[difference] = None
        elif len(pairs) > 1:
            found[difference] = paired_difference(ours, theirs)
        else:
            here, there = (getattr(one.drawn, name) for one in pairs[0])
            found[difference] = drawn_difference(ours[0] - theirs[0], here, there)
    return found


def _front(contestants: Contestants, estimates: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the labels that nobody beats by their means: live among live, simulated among simulated."""
    front: set[str] = set()
    first = {label: runs[0].info for label, runs in contestants.items()}
    for world in {info.world for info in first.values()}:
        playing = [label for label, one in first.items() if one.world == world and one.policy not in FORESEEING]
        means = [(estimates[one]["in_sla"].mean, estimates[one]["replica_minutes"].mean) for one in playing]
        front |= {playing[place] for place in pareto_front(means)}
    return front


def labelled(entrants: Sequence[Entrant]) -> dict[str, list[Entrant]]:
    """Return label → runs. A label says all in which its runs differ from others."""
    both = len({one.info.world for one in entrants}) > 1
    keys = sorted({key for one in entrants for key in one.settings} - UNTOLD)
    differing = [key for key in keys if len({repr(one.settings[key]) for one in entrants if key in one.settings}) > 1]
    found: dict[str, list[Entrant]] = {}
    for one in entrants:
        policy = one.info.policy + (f" ({one.info.world})" if both else "")
        label = ", ".join([policy, *(f"{key}={one.settings[key]}" for key in differing if key in one.settings)])
        found.setdefault(label, []).append(one)
    return found


def _pairs(contestants: Contestants, label: str) -> list[Pair]:
    """Return runs of `label` and of the reference with the same seed; the k-th of a seed meets the k-th."""
    unmet, found = list(next(iter(contestants.values()))), []
    for one in contestants[label]:
        if other := next((each for each in unmet if each.info.seed == one.info.seed), None):
            unmet.remove(other)
            found.append((one, other))
    return found


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
