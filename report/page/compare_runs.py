"""From runs and what was counted in them to the comparison: estimates, differences, the front.

Over seeds where there are several pairs; over the seconds of both runs where there is one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from report.page import blocks
from report.page.blocks import Cells, Drawn
from report.page.comparison_words import METHOD, problems, sentence
from report.page.contest import Contest, Entrant, Pair
from report.page.run_comparison import (
    ComparedRun,
    Contestant,
    RunComparison,
    RunDifference,
    SameEvents,
    ScenarioCompared,
)
from report.result import Result
from report.run_info import FORESEEING
from report.statistics import Against, Interval, bootstrap_interval, paired_difference, pareto_front

Measure = Callable[[Result], float | None]
MEASURES: Final[dict[str, Measure]] = {
    "in_sla": lambda result: result.in_sla,
    "p99_s": lambda result: result.p99_s,
    "p999_s": lambda result: result.p999_s,
    "replica_minutes": lambda result: result.replica_minutes,
}
"""Name, here and in `Drawn` → what is compared."""
ALWAYS_KNOWN: Final = ("in_sla", "replica_minutes")


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted in the events of runs, by their folders."""

    cells: Mapping[Path, Cells] = field(default_factory=dict)
    """Of the runs that `to_draw` names."""
    same: Mapping[tuple[Path, Path], SameEvents] = field(default_factory=dict)
    """Of the pairs that `lone_pairs` names."""


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
    drawn = {folder: blocks.draw(cells) for folder, cells in counted.cells.items()}
    scenarios = [_scenario(contest, counted, drawn) for contest in contests]
    return RunComparison(
        verdict=" ".join(map(sentence, scenarios)),
        scenarios=tuple(scenarios),
        problems=tuple(
            problem
            for contest in contests
            for problem in problems(contest, [(pair, counted.same[_folders(pair)]) for pair in lone_pairs(contest)])
        ),
        method=METHOD,
        command=command,
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
        bound_replica_minutes=first.cost.bound_replica_minutes if first.cost else None,
        contestants=tuple(_contestant(label, runs, drawn, front) for label, runs in contest.contestants.items()),
        differences=tuple(_difference(contest, label, counted, drawn) for label in others),
        runs=tuple(_run(label, one) for label, runs in contest.contestants.items() for one in runs),
    )


def _contestant(label: str, runs: Sequence[Entrant], drawn: Mapping[Path, Drawn], front: set[str]) -> Contestant:
    in_sla, replica_minutes = (_estimate(name, runs, drawn) for name in ALWAYS_KNOWN)
    assert in_sla is not None
    assert replica_minutes is not None
    return Contestant(
        label=label,
        policy=runs[0].info.policy,
        world=runs[0].info.world,
        runs=len(runs),
        in_sla=in_sla,
        p99_s=_estimate("p99_s", runs, drawn),
        p999_s=_estimate("p999_s", runs, drawn),
        replica_minutes=replica_minutes,
        on_front=label in front,
    )


def _estimate(name: str, runs: Sequence[Entrant], drawn: Mapping[Path, Drawn]) -> Interval | None:
    """Return mean and interval of a measure; None where it is not known of every run."""
    values = [value for one in runs if (value := MEASURES[name](one.result)) is not None]
    if len(values) < len(runs):
        return None
    if len(values) > 1:
        return bootstrap_interval(values)
    return blocks.interval(values[0], getattr(drawn[runs[0].folder], name))


def _difference(contest: Contest, label: str, counted: Counted, drawn: Mapping[Path, Drawn]) -> RunDifference:
    pairs = contest.pairs(label)
    in_sla, replica_minutes = (_versus(name, pairs, drawn) for name in ALWAYS_KNOWN)
    assert in_sla is not None
    assert replica_minutes is not None
    return RunDifference(
        label=label,
        reference=contest.reference,
        over="seeds" if len(pairs) > 1 else "seconds",
        pairs=len(pairs),
        in_sla=in_sla,
        p99_s=_versus("p99_s", pairs, drawn),
        p999_s=_versus("p999_s", pairs, drawn),
        replica_minutes=replica_minutes,
        same_events=counted.same[_folders(pairs[0])] if len(pairs) == 1 else None,
    )


def _versus(name: str, pairs: Sequence[Pair], drawn: Mapping[Path, Drawn]) -> Against | None:
    """Return mean and interval of the differences of a measure; None where it is not known of every run."""
    values = [(MEASURES[name](one.result), MEASURES[name](other.result)) for one, other in pairs]
    known = [(a, b) for a, b in values if a is not None and b is not None]
    if len(known) < len(values):
        return None
    if len(known) > 1:
        found = paired_difference([a for a, _ in known], [b for _, b in known])
        return Against(mean=found.mean, low=found.low, high=found.high, distinguishable=found.distinguishable)
    here, there = (getattr(drawn[folder], name) for folder in _folders(pairs[0]))
    return blocks.against(known[0][0] - known[0][1], here, there)


def _folders(pair: Pair) -> tuple[Path, Path]:
    return pair[0].folder, pair[1].folder


def _run(label: str, one: Entrant) -> ComparedRun:
    result = one.result
    assert result.replica_minutes is not None
    return ComparedRun(
        run=result.run,
        contestant=label,
        seed=result.seed,
        events=result.events,
        in_sla=result.in_sla,
        p99_s=result.p99_s,
        p999_s=result.p999_s,
        replica_minutes=result.replica_minutes,
        bound_replica_minutes=result.cost.bound_replica_minutes if result.cost else None,
        valid=result.valid,
        commit=result.provenance.commit,
    )


def _front(contest: Contest) -> set[str]:
    """Return the labels that nobody beats by their means: live among live, simulated among simulated."""
    front: set[str] = set()
    for world in {runs[0].info.world for runs in contest.contestants.values()}:
        means = {
            label: (_mean(runs, "in_sla"), _mean(runs, "replica_minutes"))
            for label, runs in contest.contestants.items()
            if runs[0].info.world == world and runs[0].info.policy not in FORESEEING
        }
        front |= {list(means)[place] for place in pareto_front(list(means.values()))}
    return front


def _mean(runs: Sequence[Entrant], name: str) -> float:
    return sum(MEASURES[name](one.result) or 0.0 for one in runs) / len(runs)
