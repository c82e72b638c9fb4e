"""Who is beaten where: every policy, as it comes and as it is best over all worlds, constant counts, share groups."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

import msgspec

from bench.experiments.campaign import Missing, Simulations
from bench.experiments.experiment import Experiment, World, simulated
from bench.experiments.opponents import DEFAULTS, OURS, Player, Settings, constant_counts, share_groups
from bench.experiments.tuning import tuned
from bench.experiments.worlds import name_of
from bench.simulation.build import CLAIRVOYANT
from bench.simulation.result import SimulationResult
from report.statistics import Against, paired_difference
from report.wording import minutes, share

FILE: Final = "fronts"
OPTIMUM: Final = "with its optimum"
"""The way in which a clairvoyant is run here."""


class FrontFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One player in one world; means over seeds."""

    world: str
    """Scenario, and what is set over it."""
    player: str
    policy: str = ""
    settings: Settings = ()
    """Of the player, over the world's."""
    ordered: bool = True
    """The events of a partition are served in their order."""
    seeds: int
    duration_s: float = 0.0
    in_sla: float
    least_in_sla: float
    """Of the seeds, and so of the phases."""
    replica_minutes: float
    packing_replica_minutes: float | None = None
    plan_changes: float
    moved: float
    beaten_by: str
    """Who keeps as many for less, or more for as much, and the order too if the beaten one does; of several the
    cheapest. Empty: nobody, it is on the front."""
    beaten_by_share_group: str = ""
    """The same where share groups, which keep no order, take part too."""
    optimum_replica_minutes: float | None = None
    """Mean over the seeds for which it was looked for and is known; None: for none."""
    optimum_lower: float | None = None
    over_optimum: float | None = None
    """Mean of replica-minutes over the optimum, over the seeds at which the promise is kept; None likewise."""
    least_over_optimum: float | None = None
    """At the best of these seeds."""
    in_sla_difference: Against | None = None
    """From tail-aware on the same seeds; None for itself, and where it has no row."""
    replica_minutes_difference: Against | None = None

    def __str__(self) -> str:
        """Return what ours came to; nothing for other players."""
        if self.player != OURS.name:
            return ""
        by = " and ".join(filter(None, (self.beaten_by, self.beaten_by_share_group)))
        return (
            f"{self.world}: {share(self.in_sla)} at {minutes(self.replica_minutes)} r-m, "
            f"{f'beaten by {by}' if by else 'on the front'}"
        )


Runs = Mapping[Player, Sequence[SimulationResult]]


def players(one: World) -> Iterator[Player]:
    """Yield all that take part in a world."""
    yield OURS
    yield from DEFAULTS.values()
    yield from tuned()
    yield from constant_counts(one)
    yield from share_groups(one)


def fronts(
    campaign: Simulations, worlds: Sequence[World], seeds: int, optima: int = 0, *, ordered: bool = False
) -> tuple[list[FrontFigures], list[Missing]]:
    """Run every player in every world; return a row each, and what failed.

    optima: for so many of the seeds, evenly chosen, look for the optimum too, where the world has one. ordered: without
    share groups. The campaign's work must be `played`.
    """
    asked = {
        one: {
            player: player.in_world(one).experiments(player.policy, seeds)
            for player in players(one)
            if player.ordered or not ordered
        }
        for one in worlds
    }
    best = {one: _optima(one, seeds, optima) for one in worlds}
    every = [run for by_player in asked.values() for runs in by_player.values() for run in runs]
    outcomes = campaign.run([*every, *(run for runs in best.values() for run in runs)])
    rows: list[FrontFigures] = []
    for one, by_player in asked.items():
        least = {run.seed: outcomes.results[run] for run in best[one] if run in outcomes.results}
        duration_s = float(next(iter(by_player.values()))[0].question().duration_s)
        rows += judged(name_of(one), outcomes.whole(by_player), least, duration_s)
    return rows, outcomes.missing


def played(one: Experiment) -> SimulationResult:
    """Do a job of the fronts: a run, or the optimum with the run of its schedule."""
    found = simulated(one)
    if one.way != OPTIMUM:
        return found
    from bench.simulation.optimum import find_optimum  # noqa: PLC0415  compiled code only where it is needed
    from bench.simulation.sent import sent_by  # noqa: PLC0415

    question = one.question()
    best = find_optimum(question, sent_by(question))[0]
    return msgspec.structs.replace(
        found, optimum_replica_minutes=best.optimum_replica_minutes, optimum_lower=best.lower
    )


def _optima(one: World, seeds: int, wanted: int) -> list[Experiment]:
    """Return the runs of the optimum for `wanted` of the seeds; none where the world has no optimum."""
    from bench.simulation.optimum import why_not  # noqa: PLC0415
    from bench.simulation.sent import sent_by  # noqa: PLC0415

    runs = [msgspec.structs.replace(run, way=OPTIMUM) for run in one.experiments(CLAIRVOYANT, seeds)]
    count = min(wanted, len(runs))
    chosen = [runs[place * len(runs) // count] for place in range(count)]
    question = runs[0].question()
    return [] if not chosen or why_not(question, sent_by(question)) else chosen


def judged(
    name: str, ran: Runs, best: Mapping[int, SimulationResult] | None = None, duration_s: float = 0.0
) -> Iterator[FrontFigures]:
    """Yield the means of each player, and who beats it. best: the optimum by seed."""
    means = {player: (fmean(one.in_sla for one in runs), _cost(runs)) for player, runs in ran.items()}
    for player, runs in ran.items():
        beating = [other for other in means if _beats(means[other], means[player])]
        in_order = [other for other in beating if other.ordered or not player.ordered]
        known = {seed: of.optimum_replica_minutes for seed, of in (best or {}).items() if of.optimum_replica_minutes}
        pairs = [(one, known[one.seed]) for one in runs if one.seed in known]
        over = [one.replica_minutes / least for one, least in pairs if one.kept is not False]
        yield FrontFigures(
            world=name,
            player=player.name,
            policy=player.policy,
            settings=player.settings,
            ordered=player.ordered,
            seeds=len(runs),
            duration_s=duration_s,
            in_sla=means[player][0],
            least_in_sla=min(one.in_sla for one in runs),
            replica_minutes=means[player][1],
            packing_replica_minutes=fmean(one.packing_replica_minutes for one in runs),
            plan_changes=fmean(one.plan_changes for one in runs),
            moved=fmean(one.moved_partitions for one in runs),
            beaten_by=_cheapest(in_order, means),
            beaten_by_share_group=_cheapest([one for one in beating if not one.ordered], means),
            optimum_replica_minutes=fmean(least for _, least in pairs) if pairs else None,
            optimum_lower=fmean((best or {})[one.seed].optimum_lower or 0 for one, _ in pairs) if pairs else None,
            over_optimum=fmean(over) if over else None,
            least_over_optimum=min(over, default=None),
            in_sla_difference=_difference(player, ran, lambda one: one.in_sla),
            replica_minutes_difference=_difference(player, ran, lambda one: one.replica_minutes),
        )


def _difference(player: Player, ran: Runs, figure: Callable[[SimulationResult], float]) -> Against | None:
    if player == OURS or OURS not in ran:
        return None
    return paired_difference(*([figure(one) for one in ran[each]] for each in (player, OURS)))


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Tell whether (in SLA, cost) keeps as many for less, or more for as much."""
    return one != other and one[0] >= other[0] and one[1] <= other[1]


def _cheapest(some: Iterable[Player], means: Mapping[Player, tuple[float, float]]) -> str:
    found = min(some, key=lambda one: (means[one][1], one.name), default=None)
    return found.name if found else ""


def _cost(runs: Iterable[SimulationResult]) -> float:
    return fmean(one.replica_minutes for one in runs)
