"""Runs that met one load against each other: means, and differences from the first, with intervals over seeds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from contracts.validation import InvalidSettingsError
from report.measures import Interval, PairedDifference, bootstrap_interval, paired_difference
from report.result import RESULT_FILE, Result
from report.run_info import RUN_FILE, RunInfo
from report.wording import UNKNOWN, dearer, duration, longer, minutes, points, share

FIGURES: Final[dict[str, tuple[str, Callable[[float], str], Callable[[float], str]]]] = {
    "in_sla": ("in time", share, points),
    "p99_s": ("p99", duration, longer),
    "p999_s": ("p99.9", duration, longer),
    "replica_minutes": ("replica-minutes", minutes, dearer),
}
"""Field of a result → its title, how a value is said, and how a difference is."""
LOAD: Final = ("name", "duration_s", "load.workload", "load.spacing", "payment.partitions", "target.latency_target_s")
"""Settings that must agree: with others, other events come, or another promise is made."""
UNTOLD: Final = frozenset({"description", "topology", "seed", "autoscaler.policy", "target.percentile", *LOAD})
"""Settings that labels do not repeat."""
METHOD: Final = (
    "Intervals hold 95 % of 10,000 bootstrap draws over the runs; a difference pairs runs of one seed. In brackets: "
    "not distinguishable from none, as every difference of a single pair."
)


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one policy under the same settings."""

    label: str
    policy: str
    world: str
    """live or simulated."""
    runs: int
    pairs: int
    """Of them, those that meet one of the reference with the same seed."""
    means: dict[str, Interval | None]
    """Figure → mean with its interval; null: not known of every run."""
    differences: dict[str, PairedDifference | None]
    """Figure → mean difference from the reference; null also without pairs."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All contestants; the first is the reference."""

    scenario: str
    contestants: tuple[Contestant, ...]
    problems: tuple[str, ...]
    """Runs that do not stand, or have no partner."""
    method: str = METHOD


class Entrant(msgspec.Struct, frozen=True):
    """A run that is to be compared."""

    folder: Path
    info: RunInfo
    result: Result
    settings: dict[str, Any]
    """Dotted key → value of all that the run was told and used."""


def entrant(folder: Path) -> Entrant:
    """Return the run in `folder`. Raises InvalidSettingsError for one that cannot be compared."""
    try:
        info, result = RunInfo.load(folder), Result.load(folder)
    except (OSError, msgspec.DecodeError) as broken:
        raise InvalidSettingsError([f"{folder}: {RUN_FILE} or {RESULT_FILE} cannot be read ({broken})"]) from broken
    if result.replica_minutes is None:
        raise InvalidSettingsError([f"{folder}: without a journal it has no cost to compare"])
    told = {key: value for key, value in info.scenario.items() if info.world != "live" or key != "simulation"}
    return Entrant(folder, info, result, dict(_flat(told)))


def compare(folders: Sequence[Path]) -> Comparison:
    """Compare runs that met the same load and have a report. Raises InvalidSettingsError where that cannot be."""
    entrants = [entrant(folder) for folder in dict.fromkeys(folder.resolve() for folder in folders)]
    first = entrants[0].settings
    for one in entrants:
        pairs = [(key, one.settings.get(key), first.get(key)) for key in LOAD]
        if other := [f"{key} is {its}, not {theirs}" for key, its, theirs in pairs if its != theirs]:
            raise InvalidSettingsError([f"{one.folder}: it met another load than the first ({', '.join(other)})"])
    sides = labelled(entrants)
    if len(sides) == 1:
        raise InvalidSettingsError(["nothing to compare: these runs differ in no policy and no setting"])
    reference = next(iter(sides))
    met = {label: [] if label == reference else _pairs(runs, sides[reference]) for label, runs in sides.items()}
    invalid = [(one.result.run, " and ".join(one.result.problems)) for one in entrants if not one.result.valid]
    problems = [f"{run}: not a valid measurement, because {why}" for run, why in invalid]
    problems += [f"{label} and {reference} have no seed in common" for label in list(sides)[1:] if not met[label]]
    contestants = [
        Contestant(
            label=label,
            policy=runs[0].info.policy,
            world=runs[0].info.world,
            runs=len(runs),
            pairs=len(met[label]),
            means={name: _mean(runs, name) for name in FIGURES},
            differences={name: _difference(met[label], name) for name in FIGURES},
        )
        for label, runs in sides.items()
    ]
    return Comparison(scenario=entrants[0].result.scenario, contestants=tuple(contestants), problems=tuple(problems))


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


def markdown(found: Comparison) -> str:
    """Return the comparison as a table in Markdown."""
    header = ["policy", "runs", *(cell for title, *_ in FIGURES.values() for cell in (title, "more"))]
    table = [header, ["---"] * len(header)]
    for one in found.contestants:
        cells = [one.label, f"{one.runs:,}"]
        for name, (_, say, say_more) in FIGURES.items():
            cells += [_said(one.means[name], say), _said(one.differences[name], say_more)]
        table.append(cells)
    lines = "\n".join(f"| {' | '.join(row)} |" for row in table)
    return "\n\n".join([f"# {found.scenario}", lines, *found.problems, found.method]) + "\n"


def _said(value: Interval | PairedDifference | None, say: Callable[[float], str]) -> str:
    if value is None:
        return UNKNOWN
    mean, low, high = (say(one) for one in (value.mean, value.low, value.high))
    text = mean if low == high else f"{mean} ({low} to {high})"
    return f"[{text}]" if isinstance(value, PairedDifference) and not value.distinguishable else text


def _mean(runs: Sequence[Entrant], name: str) -> Interval | None:
    values = [getattr(one.result, name) for one in runs]
    return None if None in values else bootstrap_interval(values)


def _difference(pairs: Sequence[tuple[Entrant, Entrant]], name: str) -> PairedDifference | None:
    values = [tuple(getattr(one.result, name) for one in pair) for pair in pairs]
    if not values or any(None in pair for pair in values):
        return None
    found = paired_difference(*zip(*values, strict=True))
    return msgspec.structs.replace(found, distinguishable=found.distinguishable and len(pairs) > 1)


def _pairs(runs: Sequence[Entrant], reference: Sequence[Entrant]) -> list[tuple[Entrant, Entrant]]:
    """Return runs of both with the same seed; the k-th of a seed meets the k-th."""
    unmet, found = list(reference), []
    for one in runs:
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
