"""What tail-aware must reach over the worlds of the fronts, one set of defaults in all, and what it came to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Final, NamedTuple

import msgspec

from bench.experiments.fronts import FrontFigures
from bench.experiments.opponents import OURS
from bench.experiments.worlds import PERIODS_S, STANDARD, name_of
from bench.results import DecisionRow, LiveRow
from report.wording import share

ByWorld = Mapping[str, Mapping[str, FrontFigures]]
"""World → player → what that came to."""
ENOUGH: Final = 0.999
TUNED: Final = "algorithm-2, tuned"
PACE_S: Final = 10.0
"""One change in so long, in the mean."""
LIVE: Final = ("w1", ("load.burst_phase_s=random",), OURS.policy)
"""Scenario, what is set over it, and policy of live runs."""
LIVE_MINUTES: Final = 29.5
DECISION_MS: Final = {100: 2.0, 10_000: 150.0}
"""Partitions → milliseconds, however events come."""
HARD: Final[tuple[str, ...]] = (
    *("heavy-bursts", "heavy-poisson", "square-30", "square-5", "square-1", "stops-3s", "stops-500ms", "slow-starts"),
    *("exponential-service", "late-sight", "mu-too-high", "mu-too-low", "two-speeds"),
)


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A target and what was reached."""

    where: str
    target: str
    figure: str
    reached: bool | None
    """None: not known."""


class Figure(NamedTuple):
    """A figure that a target limits."""

    value: Callable[[FrontFigures], float | None]
    said: Callable[[float], str]
    at_least: bool
    what: str = ""


FIGURES: Final = {
    "in_sla": Figure(lambda row: row.in_sla, share, at_least=True),
    "least_in_sla": Figure(lambda row: row.least_in_sla, share, at_least=True, what=" at the worst phase"),
    "over_optimum": Figure(lambda row: row.over_optimum, "{:.3f} ×".format, at_least=False, what=" the optimum"),
    "least_over_optimum": Figure(
        lambda row: row.least_over_optimum, "{:.3f} ×".format, at_least=False, what=" the optimum at the best phase"
    ),
    "packing": Figure(
        lambda row: row.replica_minutes / row.packing_replica_minutes if row.packing_replica_minutes else None,
        "{:.3f} ×".format,
        at_least=False,
        what=" the per-second packing",
    ),
}


class Goal(NamedTuple):
    """Limits in one world, by the names of FIGURES."""

    world: str
    limits: Mapping[str, float]

    def check(self, ours: FrontFigures | None) -> Checked:
        """Return what was reached; missed where a figure that is known is beyond its limit."""
        target, figure, kept = [], [], list[bool | None]()
        for name, limit in self.limits.items():
            one = FIGURES[name]
            value = one.value(ours) if ours else None
            target.append(f"{'≥' if one.at_least else '≤'} {one.said(limit)}{one.what}")
            figure.append(f"{'–' if value is None else one.said(value)}{one.what}")
            kept.append(None if value is None else value >= limit if one.at_least else value <= limit)
        reached = False if False in kept else None if None in kept else True
        return Checked(where=self.world, target="; ".join(target), figure="; ".join(figure), reached=reached)


ANYWHERE: Final = {"in_sla": ENOUGH, "least_in_sla": 0.998, "over_optimum": 1.15}
GOALS: Final = (
    Goal("w1", {**ANYWHERE, "least_over_optimum": 1.06}),
    Goal("w1, split=random", ANYWHERE),
    *(Goal(f"w1, burst_period_s={period_s}", ANYWHERE) for period_s in PERIODS_S),
    Goal("w1, burst_jitter_s=0.3", ANYWHERE),
    Goal("taxi", {**ANYWHERE, "over_optimum": 1.06}),
    Goal("diurnal-week", {**ANYWHERE, "over_optimum": 1.08}),
    Goal("w1-skew9", {"in_sla": 0.9997, "packing": 0.996}),
    Goal("w3", {"in_sla": 1.0, "packing": 0.951}),
    Goal("w4", {"in_sla": 1.0, "packing": 0.906}),
    Goal("w1, spacing=smooth", {"in_sla": 1.0, "packing": 0.959}),
    Goal("w1, spacing=poisson", {"in_sla": 1.0, "packing": 0.959}),
)
"""The last five: no fewer in time and no dearer than at the papers' own phase before phases were random."""


def by_world(rows: Sequence[FrontFigures]) -> ByWorld:
    """Return the rows by world, each in its order."""
    return {name: {row.player: row for row in some} for name, some in groupby(rows, key=lambda row: row.world)}


def checked(worlds: ByWorld, live: Sequence[LiveRow] = (), decisions: Sequence[DecisionRow] = ()) -> Iterator[Checked]:
    """Yield every target. live, decisions: the live runs and the times of decisions that are known."""
    ours = {name: players[OURS.name] for name, players in worlds.items() if OURS.name in players}
    for goal in GOALS:
        yield goal.check(ours.get(goal.world))
    everywhere = {name: (worlds[name], row) for name, row in ours.items()}
    hard = {name: everywhere[name] for name in HARD if name in everywhere}
    yield _where("each of the hard worlds", "≥ 99.9 % where any other reaches that", _short, hard)
    yield _where("every world", "not beaten, share groups aside", _beaten, everywhere)
    yield _where("every world", f"no more plan changes than {TUNED}", _restless, everywhere)
    yield _pace(ours)
    yield _live(live)
    for partitions, limit_ms in DECISION_MS.items():
        yield _decision(partitions, limit_ms, decisions)


Fault = Callable[[Mapping[str, FrontFigures], FrontFigures], str | None]
"""What is wrong with ours among the players of a world; empty: nothing, None: not known."""


def _where(
    where: str, target: str, fault: Fault, played: Mapping[str, tuple[Mapping[str, FrontFigures], FrontFigures]]
) -> Checked:
    """Return in which worlds a target is missed, and how. played: world → all players, and ours."""
    found = {name: fault(players, ours) for name, (players, ours) in played.items()}
    wrong = [f"{name} ({said})" for name, said in found.items() if said]
    unknown = sum(said is None for said in found.values())
    figure = f"{len(found) - len(wrong) - unknown} of {len(found)}" + (f"; not in {', '.join(wrong)}" if wrong else "")
    figure += f"; {unknown} not known" if unknown else ""
    return Checked(
        where=where,
        target=target,
        figure=figure,
        reached=False if wrong else None if unknown or not found else True,
    )


def _short(players: Mapping[str, FrontFigures], ours: FrontFigures) -> str:
    able = [row for row in players.values() if row.ordered and row.in_sla >= ENOUGH and row.player != OURS.name]
    best = min(able, key=lambda row: row.replica_minutes, default=None)
    if best is None or ours.in_sla >= ENOUGH:
        return ""
    return f"{share(ours.in_sla)} at {ours.replica_minutes:.1f} r-m; {best.player} at {best.replica_minutes:.1f}"


def _beaten(_: Mapping[str, FrontFigures], ours: FrontFigures) -> str:
    return f"by {ours.beaten_by}" if ours.beaten_by else ""


def _restless(players: Mapping[str, FrontFigures], ours: FrontFigures) -> str | None:
    if TUNED not in players:
        return None
    allowed = players[TUNED].plan_changes
    return f"{ours.plan_changes:.0f}, {allowed:.0f} there" if ours.plan_changes > allowed else ""


def _pace(ours: Mapping[str, FrontFigures]) -> Checked:
    paces = [
        row.plan_changes / row.duration_s * PACE_S
        for row in (ours[name] for name in map(name_of, STANDARD) if name in ours)
        if row.duration_s
    ]
    return Checked(
        where="the standard worlds",
        target=f"≤ 1 plan change in {PACE_S:g} s, in the mean",
        figure=f"{fmean(paces):.2f}" if paces else "–",
        reached=fmean(paces) <= 1 if paces else None,
    )


def _live(rows: Sequence[LiveRow]) -> Checked:
    runs = [row for row in rows if (row.scenario, row.settings, row.policy) == LIVE and row.replica_minutes]
    in_sla = [row.in_sla for row in runs]
    minutes = [row.replica_minutes or 0.0 for row in runs]
    return Checked(
        where="live, w1 at random phases",
        target=f"≥ {share(ENOUGH)} at ≤ {LIVE_MINUTES:g} r-m",
        figure=f"{share(fmean(in_sla))} at {fmean(minutes):.2f} r-m ({len(runs)} runs)" if runs else "–",
        reached=fmean(in_sla) >= ENOUGH and fmean(minutes) <= LIVE_MINUTES if runs else None,
    )


def _decision(partitions: int, limit_ms: float, rows: Sequence[DecisionRow]) -> Checked:
    taken = {row.arrivals: row.ms[OURS.policy] for row in rows if row.partitions == partitions}
    return Checked(
        where=f"one decision, {partitions:,} partitions",
        target=f"≤ {limit_ms:g} ms",
        figure=", ".join(f"{ms:.1f} ms {arrivals}" for arrivals, ms in taken.items()) or "–",
        reached=max(taken.values()) <= limit_ms if taken else None,
    )
