"""From runs and what was counted in them to the comparison: estimates, differences, the front.

Over seeds where there are several pairs; over the seconds of both runs where there is one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from report.comparison import ComparedRun, Contestant, RunComparison, RunDifference, SameEvents, ScenarioCompared
from report.result import Result
from report.run_info import FORESEEING, RunInfo
from report.statistics import (
    Against,
    Cells,
    Drawn,
    Interval,
    bootstrap_interval,
    draw,
    drawn_difference,
    drawn_interval,
    paired_difference,
    pareto_front,
)
from report.wording import dearer, duration, longer, minutes, points, share

MEASURES: Final[dict[str, Callable[[float], str]]] = {
    "in_sla": points, "p99_s": longer, "p999_s": longer, "replica_minutes": dearer,
}  # fmt: skip
"""Name, in results, comparisons and `Drawn` → how a difference of it is said."""
MOST_SAID: Final = 3
"""Differences that a verdict says; the table says all."""
METHOD: Final = (
    "Intervals hold 95 % of 10,000 seeded bootstrap draws; where one holds 0, the two are not distinguishable. "
    "Over seeds, whole pairs of runs of the same seed are drawn: it tells how further seeds would come out, and with "
    "fewer than six pairs it spans little more than what was seen. Over seconds, blocks of seconds of a single pair "
    "are drawn, the same of both runs: it tells whether a difference would stand had other seconds like these been "
    "met, and not how another run would differ, with another seed, on another machine, on another day."
)


LOAD: Final = ("duration_s", "load.workload", "load.spacing", "payment.partitions", "target.latency_target_s")
"""Settings that must agree: with others, other events come, or another promise is made."""
UNTOLD: Final = frozenset({"name", "description", "topology", "seed", "autoscaler.policy", "target.percentile", *LOAD})
"""Settings that labels do not repeat."""
SIMULATION: Final = "simulation."
"""Settings that a live run has, and does not use."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A run that is to be compared."""

    folder: Path
    info: RunInfo
    result: Result

    def settings(self) -> dict[str, Any]:
        """Return dotted key → value of all that the run was told."""
        told = dict(_flat(self.info.scenario))
        live = self.info.world == "live"
        return {key: value for key, value in told.items() if not (live and key.startswith(SIMULATION))}

    def load(self) -> tuple[Any, ...]:
        """Return what its group has in common."""
        told = self.settings()
        return (self.result.scenario, *(told.get(key) for key in LOAD))


Pair = tuple[Entrant, Entrant]
"""A run, and the one of the reference that it meets."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Runs of one load, by the label of the contestant; in the order in which they were named."""

    scenario: str
    settings: tuple[str, ...]
    contestants: Mapping[str, Sequence[Entrant]]

    @property
    def reference(self) -> str:
        """Return the label that the others are compared with."""
        return next(iter(self.contestants))

    def pairs(self, label: str) -> list[Pair]:
        """Return runs of `label` and of the reference with the same seed; the k-th of a seed meets the k-th."""
        theirs = _by_turn(self.contestants[self.reference])
        return [(one, theirs[turn]) for turn, one in _by_turn(self.contestants[label]).items() if turn in theirs]


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted in the events of runs, by their folders."""

    cells: Mapping[Path, Cells] = field(default_factory=dict)
    """Of the runs that `to_draw` names."""
    same: Mapping[tuple[Path, Path], SameEvents] = field(default_factory=dict)
    """Of the pairs that `lone_pairs` names."""


def contests(entrants: Sequence[Entrant]) -> list[Contest]:
    """Return the groups, by the first run named of each."""
    groups: dict[tuple[Any, ...], list[Entrant]] = {}
    for one in entrants:
        groups.setdefault(one.load(), []).append(one)
    return [Contest(load[0], _apart(load, list(groups)), _labelled(some)) for load, some in groups.items()]


def lone_pairs(contest: Contest) -> list[Pair]:
    """Return the pairs that are the only one of their contestant: own run, run of the reference."""
    pairs = [contest.pairs(label) for label in contest.contestants if label != contest.reference]
    return [some[0] for some in pairs if len(some) == 1]


def to_draw(contest: Contest) -> list[Entrant]:
    """Return the runs whose seconds say how sure they are."""
    lone = [runs[0] for runs in contest.contestants.values() if len(runs) == 1]
    return list({one.folder: one for one in [*lone, *(one for pair in lone_pairs(contest) for one in pair)]}.values())


def compared(contests: Sequence[Contest], counted: Counted, *, command: str) -> RunComparison:
    """Return the comparison. counted: of everything that `to_draw` and `lone_pairs` name."""
    drawn = {folder: draw(cells) for folder, cells in counted.cells.items()}
    scenarios = [_scenario(contest, counted, drawn) for contest in contests]
    return RunComparison(
        verdict=" ".join(map(verdict, scenarios)),
        scenarios=tuple(scenarios),
        problems=tuple(problem for contest in contests for problem in _problems(contest, counted)),
        method=METHOD,
        command=command,
    )


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
    if len(one.differences) > MOST_SAID:
        return said
    return " ".join([said, *(f"{each.label} against {each.reference}: {_told(each)}." for each in one.differences)])


def _told(one: RunDifference) -> str:
    words = {"in_sla": "{} in time", "p99_s": "p99 {}", "p999_s": "p99.9 {}", "replica_minutes": "{} replica-minutes"}
    known = {name: value for name in MEASURES if (value := getattr(one, name)) is not None and value.distinguishable}
    told = [words[name].format(MEASURES[name](value.mean)) for name, value in known.items()]
    return ", ".join(told) or "not distinguishable"


def _problems(contest: Contest, counted: Counted) -> Iterable[str]:
    """Yield why something does not stand or could not be compared."""
    for one in (one for runs in contest.contestants.values() for one in runs):
        if not one.result.valid:
            yield f"{one.result.run}: not a valid measurement, because {' and '.join(one.result.problems)}"
    if len(contest.contestants) == 1:
        yield f"{contest.scenario}: only {contest.reference} met this load: nothing to compare"
    for label in contest.contestants:
        if not contest.pairs(label):
            yield f"{contest.scenario}: {label} and {contest.reference} have no seed in common"
    for one, other in lone_pairs(contest):
        same = counted.same[one.folder, other.folder]
        if same.paired < same.of:
            yield (
                f"{one.result.run} and {other.result.run} did not meet the same events: {share(same.paired / same.of)} "
                "of them have place and intended time in common"
            )


def _scenario(contest: Contest, counted: Counted, drawn: Mapping[Path, Drawn]) -> ScenarioCompared:
    first = contest.contestants[contest.reference][0].result
    front = _front(contest)
    others = [label for label in contest.contestants if label != contest.reference and contest.pairs(label)]
    return ScenarioCompared(
        scenario=contest.scenario,
        settings=contest.settings,
        latency_target_s=first.latency_target_s,
        percentile=first.percentile,
        reference=contest.reference,
        bound_replica_minutes=_bound(first),
        contestants=tuple(
            Contestant(
                label=label,
                policy=runs[0].info.policy,
                world=runs[0].info.world,
                runs=len(runs),
                on_front=label in front,
                **_estimates(runs, drawn),
            )
            for label, runs in contest.contestants.items()
        ),
        differences=tuple(_difference(contest, label, counted, drawn) for label in others),
        runs=tuple(_run(label, one) for label, runs in contest.contestants.items() for one in runs),
    )


def _estimates(runs: Sequence[Entrant], drawn: Mapping[Path, Drawn]) -> dict[str, Any]:
    """Return mean and interval of each measure; None where it is not known of every run."""
    found: dict[str, Interval | None] = {}
    for name in MEASURES:
        values = [value for one in runs if (value := getattr(one.result, name)) is not None]
        if len(values) < len(runs):
            found[name] = None
        elif len(values) > 1:
            found[name] = bootstrap_interval(values)
        else:
            found[name] = drawn_interval(values[0], getattr(drawn[runs[0].folder], name))
    return found


def _difference(contest: Contest, label: str, counted: Counted, drawn: Mapping[Path, Drawn]) -> RunDifference:
    pairs = contest.pairs(label)
    folders = (pairs[0][0].folder, pairs[0][1].folder)
    return RunDifference(
        label=label,
        reference=contest.reference,
        over="seeds" if len(pairs) > 1 else "seconds",
        pairs=len(pairs),
        same_events=counted.same[folders] if len(pairs) == 1 else None,
        **{name: _versus(name, pairs, drawn) for name in MEASURES},
    )


def _versus(name: str, pairs: Sequence[Pair], drawn: Mapping[Path, Drawn]) -> Against | None:
    """Return mean and interval of the differences of a measure; None where it is not known of every run."""
    values = [(getattr(one.result, name), getattr(other.result, name)) for one, other in pairs]
    if any(value is None for pair in values for value in pair):
        return None
    if len(values) > 1:
        return paired_difference([a for a, _ in values], [b for _, b in values])
    here, there = (getattr(drawn[one.folder], name) for one in pairs[0])
    return drawn_difference(values[0][0] - values[0][1], here, there)


def _run(label: str, one: Entrant) -> ComparedRun:
    result = one.result
    return ComparedRun(
        **{name: getattr(result, name) for name in ("run", "seed", "events", "in_sla", "p99_s", "p999_s", "valid")},
        contestant=label,
        replica_minutes=result.replica_minutes or 0.0,
        bound_replica_minutes=_bound(result),
        commit=result.provenance.commit,
    )


def _bound(result: Result) -> float | None:
    return result.cost.bound_replica_minutes if result.cost else None


def _front(contest: Contest) -> set[str]:
    """Return the labels that nobody beats by their means: live among live, simulated among simulated."""
    front: set[str] = set()
    for world in {runs[0].info.world for runs in contest.contestants.values()}:
        means = {
            label: tuple(
                sum(getattr(one.result, name) or 0.0 for one in runs) / len(runs)
                for name in ("in_sla", "replica_minutes")
            )
            for label, runs in contest.contestants.items()
            if runs[0].info.world == world and runs[0].info.policy not in FORESEEING
        }
        points_of = [(kept, cost) for kept, cost in means.values()]
        front |= {list(means)[place] for place in pareto_front(points_of)}
    return front


def _labelled(entrants: Sequence[Entrant]) -> dict[str, list[Entrant]]:
    """Return label → runs. A label says all in which its runs differ from others of the group."""
    told = [one.settings() for one in entrants]
    both = len({one.info.world for one in entrants}) > 1
    keys = sorted({key for each in told for key in each} - UNTOLD)
    differing = [key for key in keys if len({repr(each[key]) for each in told if key in each}) > 1]
    found: dict[str, list[Entrant]] = {}
    for one, each in zip(entrants, told, strict=True):
        policy = one.info.policy + (f" ({one.info.world})" if both else "")
        label = ", ".join([policy, *(f"{key}={each[key]}" for key in differing if key in each)])
        found.setdefault(label, []).append(one)
    return found


def _apart(load: tuple[Any, ...], all_loads: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """Return key=value of what tells a load from others of the same name."""
    namesakes = [other for other in all_loads if other[0] == load[0]]
    return tuple(
        f"{key}={load[place]}"
        for place, key in enumerate(LOAD, start=1)
        if any(other[place] != load[place] for other in namesakes)
    )


def _by_turn(entrants: Sequence[Entrant]) -> dict[tuple[int, int], Entrant]:
    """Return (seed, how many runs of it came before) → run."""
    found: dict[tuple[int, int], Entrant] = {}
    for one in entrants:
        turn = sum(seed == one.info.seed for seed, _ in found)
        found[one.info.seed, turn] = one
    return found


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
