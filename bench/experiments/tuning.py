"""Which one setting of an opponent is best over all worlds."""

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean
from typing import Any, Final

import msgspec

from autoscaler.policies.tail_aware.policy import TailAwareSettings
from bench.experiments.campaign import Missing, Simulations
from bench.experiments.experiment import World
from bench.experiments.opponents import DEFAULTS, Player, candidates
from bench.results import FOLDER, load
from bench.scenario import Scenario
from bench.simulation.build import true_service_rate
from bench.simulation.result import SimulationResult

FILE: Final = "fronts-tuned"
RULE: Final = (
    "What a run costs is its replica-seconds and what its late events are worth, price/(μ·(1 − q)) replica-seconds "
    "each with the price that `tail-aware` itself reckons with (0.25 at μ = 200 and q = 0.999). In each world this is "
    "divided by the least that any opponent at any setting came to there; best is the setting with the least geometric "
    "mean over the worlds. So no world counts more because it is large, and a setting is neither best by always having "
    "too much nor by being cheap and late."
)


class TunedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """An opponent at one setting, over all worlds."""

    opponent: str
    policy: str
    settings: dict[str, Any]
    worlds: int
    seeds: int
    times_best: float
    """Geometric mean over the worlds of what it costs, over the least that any opponent came to there."""
    kept: int
    """Worlds with at least 99.9 % of the events in time, in the mean over seeds."""
    chosen: bool
    """The best of the opponent's settings."""

    def __str__(self) -> str:
        """Return the best setting of an opponent; nothing for the others."""
        said = ", ".join(f"{key}={value}" for key, value in self.settings.items()) or "as it comes"
        return f"{self.opponent}: {said}: {self.times_best:.3f} × the cheapest" if self.chosen else ""


def tune(campaign: Simulations, worlds: Sequence[World], seeds: int) -> tuple[list[TunedFigures], list[Missing]]:
    """Run every opponent at every setting in every world; return a row each, and what failed.

    A setting that failed with any seed of any world has no row.
    """
    every = [player for opponent in DEFAULTS for player in candidates(opponent)]
    asked = {
        player: {one: player.in_world(one).experiments(player.policy, seeds) for one in worlds} for player in every
    }
    outcomes = campaign.run(run for runs in asked.values() for some in runs.values() for run in some)
    found = {player: ran for player, runs in asked.items() if len(ran := outcomes.whole(runs)) == len(runs)}
    questions = {one: one.experiments("static", 1)[0].question() for one in worlds}
    return chosen(found, questions, seeds), outcomes.missing


def chosen(
    found: Mapping[Player, Mapping[World, Sequence[SimulationResult]]],
    questions: Mapping[World, Scenario],
    seeds: int,
) -> list[TunedFigures]:
    """Return a row for each player, with the best of each name marked. found: runs by player and world."""
    costs = {
        player: {one: fmean(cost_s(questions[one], run) for run in runs) for one, runs in by_world.items()}
        for player, by_world in found.items()
    }
    least = {one: min(by_world[one] for by_world in costs.values()) for one in questions}
    over = {
        player: exp(fmean(log(cost / least[one]) for one, cost in by_world.items()))
        for player, by_world in costs.items()
    }
    best = {name: min((one for one in over if one.name == name), key=over.__getitem__) for name in DEFAULTS}
    return [
        TunedFigures(
            opponent=player.name,
            policy=player.policy,
            settings=dict(player.settings),
            worlds=len(by_world),
            seeds=seeds,
            times_best=over[player],
            kept=sum(fmean(run.in_sla for run in runs) >= 0.999 for runs in by_world.values()),
            chosen=player == best[player.name],
        )
        for player, by_world in found.items()
    ]


def cost_s(question: Scenario, run: SimulationResult) -> float:
    """Return replica-seconds, those that the late events are worth included."""
    worth_s = TailAwareSettings().price / (true_service_rate(question) * (1 - question.target.percentile))
    return 60 * run.replica_minutes + worth_s * run.events * (1 - run.in_sla)


def tuned() -> list[Player]:
    """Return each opponent at its best setting, as committed; none where nothing was tuned yet."""
    return [
        Player(f"{row.opponent}, tuned", row.policy, tuple(sorted(row.settings.items())))
        for row in (kept.result for kept in load(FILE, TunedFigures, FOLDER))
        if row.chosen
    ]
