"""Compare runs that had the same load: their means and paired differences, with intervals over the seeds."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from contracts.validation import DECODE_ERRORS, InvalidSettingsError
from report.measures import Interval, PairedDifference, bootstrap_interval, paired_difference
from report.result import RESULT_FILE, Result
from report.run_info import RUN_FILE, RunInfo, flat
from report.wording import UNKNOWN, cost_difference, duration, duration_difference, minutes, share, share_difference

COMPARED_FIGURES: Final[dict[str, tuple[str, Callable[[float], str], Callable[[float], str]]]] = {
    "in_sla": ("in time", share, share_difference),
    "p99_s": ("p99", duration, duration_difference),
    "p999_s": ("p99.9", duration, duration_difference),
    "replica_minutes": ("replica-minutes", minutes, cost_difference),
}
"""Field of a result → its title, the format of a value, and the format of a difference."""
LOAD: Final = ("name", "duration_s", "load.workload", "load.spacing", "payment.partitions", "target.latency_target_s")
"""Settings that must be equal in all compared runs, because they define the events and the SLO."""
UNLABELLED: Final = frozenset({"description", "topology", "seed", "autoscaler.policy", "target.percentile", *LOAD})
"""Settings that never appear in a label."""
METHOD: Final = (
    "Intervals are 95 % bootstrap intervals over the runs (10,000 resamples). A difference pairs runs of one seed. "
    "Brackets mark a difference that cannot be distinguished from zero. A single pair is always in brackets."
)


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one policy under the same settings."""

    label: str
    policy: str
    world: str
    """Origin of the runs: live or simulated."""
    runs: int
    pairs: int
    """Number of runs for which the reference has a run with the same seed."""
    means: dict[str, Interval | None]
    """Figure → mean with its interval; null: at least one run lacks the figure."""
    differences: dict[str, PairedDifference | None]
    """Figure → mean difference from the reference; null: a run lacks the figure, or there is no pair."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All contestants; the first is the reference."""

    scenario: str
    contestants: tuple[Contestant, ...]
    problems: tuple[str, ...]
    """One clause for each run that is not valid, and for each label that has no seed in common with the reference."""
    method: str = METHOD


class ComparedRun(msgspec.Struct, frozen=True):
    """A run with its settings and its result."""

    folder: Path
    info: RunInfo
    result: Result
    settings: dict[str, Any]
    """Dotted key → value of each setting that the run used."""


def read_run(folder: Path) -> ComparedRun:
    """Return the run in `folder`. Raises InvalidSettingsError if it cannot be compared."""
    try:
        info, result = RunInfo.load(folder), Result.load(folder)
    except (OSError, *DECODE_ERRORS) as broken:
        raise InvalidSettingsError([f"{folder}: {RUN_FILE} or {RESULT_FILE} cannot be read ({broken})"]) from broken
    if result.replica_minutes is None:
        raise InvalidSettingsError([f"{folder}: it has no journal, so there is no cost to compare"])
    used = {key: value for key, value in info.scenario.items() if info.world != "live" or key != "simulation"}
    return ComparedRun(folder, info, result, dict(flat(used)))


def compare(folders: Sequence[Path]) -> Comparison:
    """Compare runs that had the same load and have a report. Raises InvalidSettingsError if they cannot be compared."""
    runs = [read_run(folder) for folder in dict.fromkeys(folder.resolve() for folder in folders)]
    first = runs[0].settings
    for run in runs:
        pairs = [(key, run.settings.get(key), first.get(key)) for key in LOAD]
        if other := [f"{key} is {value}, not {expected}" for key, value, expected in pairs if value != expected]:
            raise InvalidSettingsError([f"{run.folder}: its load differs from the first run ({', '.join(other)})"])
    sides = group_by_label(runs)
    if len(sides) == 1:
        raise InvalidSettingsError(["all runs have the same policy and settings; add a run that differs"])
    reference = next(iter(sides))
    pairs_of = {label: [] if label == reference else _pairs(side, sides[reference]) for label, side in sides.items()}
    invalid = [(run.result.run, " and ".join(run.result.problems)) for run in runs if not run.result.valid]
    problems = [f"{run}: not a valid measurement, because {reason}" for run, reason in invalid]
    problems += [f"{label} and {reference} have no seed in common" for label in list(sides)[1:] if not pairs_of[label]]
    contestants = [
        Contestant(
            label=label,
            policy=side[0].info.policy,
            world=side[0].info.world,
            runs=len(side),
            pairs=len(pairs_of[label]),
            means={name: _mean(side, name) for name in COMPARED_FIGURES},
            differences={name: _difference(pairs_of[label], name) for name in COMPARED_FIGURES},
        )
        for label, side in sides.items()
    ]
    return Comparison(scenario=runs[0].result.scenario, contestants=tuple(contestants), problems=tuple(problems))


def group_by_label(runs: Sequence[ComparedRun]) -> dict[str, list[ComparedRun]]:
    """Return label → its runs. The label contains the policy and each setting that differs among all runs."""
    both = len({run.info.world for run in runs}) > 1
    keys = sorted({key for run in runs for key in run.settings} - UNLABELLED)
    differing = [key for key in keys if len({repr(run.settings[key]) for run in runs if key in run.settings}) > 1]
    found: dict[str, list[ComparedRun]] = {}
    for run in runs:
        policy = run.info.policy + (f" ({run.info.world})" if both else "")
        label = ", ".join([policy, *(f"{key}={run.settings[key]}" for key in differing if key in run.settings)])
        found.setdefault(label, []).append(run)
    return found


def markdown(found: Comparison) -> str:
    """Return the comparison as a table in Markdown."""
    header = ["policy", "runs", *(cell for title, *_ in COMPARED_FIGURES.values() for cell in (title, "difference"))]
    table = [header, ["---"] * len(header)]
    for side in found.contestants:
        cells = [side.label, f"{side.runs:,}"]
        for name, (_, as_text, change) in COMPARED_FIGURES.items():
            cells += [_format_interval(side.means[name], as_text), _format_interval(side.differences[name], change)]
        table.append(cells)
    lines = "\n".join(f"| {' | '.join(row)} |" for row in table)
    return "\n\n".join([f"# {found.scenario}", lines, *found.problems, found.method]) + "\n"


def _format_interval(value: Interval | PairedDifference | None, as_text: Callable[[float], str]) -> str:
    if value is None:
        return UNKNOWN
    mean, low, high = map(as_text, (value.mean, value.low, value.high))
    text = mean if low == high else f"{mean} ({low} to {high})"
    return f"[{text}]" if isinstance(value, PairedDifference) and not value.distinguishable else text


def _mean(runs: Sequence[ComparedRun], name: str) -> Interval | None:
    values = [getattr(run.result, name) for run in runs]
    return None if None in values else bootstrap_interval(values)


def _difference(pairs: Sequence[tuple[ComparedRun, ComparedRun]], name: str) -> PairedDifference | None:
    values = [tuple(getattr(run.result, name) for run in pair) for pair in pairs]
    if not values or any(None in pair for pair in values):
        return None
    found = paired_difference(*zip(*values, strict=True))
    return msgspec.structs.replace(found, distinguishable=found.distinguishable and len(pairs) > 1)


def _pairs(runs: Sequence[ComparedRun], reference: Sequence[ComparedRun]) -> list[tuple[ComparedRun, ComparedRun]]:
    unpaired, found = list(reference), []
    for run in runs:
        if partner := next((other for other in unpaired if other.info.seed == run.info.seed), None):
            unpaired.remove(partner)
            found.append((run, partner))
    return found
