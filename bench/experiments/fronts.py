"""Who is beaten where: every policy, as it comes and as it is best over all worlds, and every constant count."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

import msgspec

from bench.experiments.campaign import Campaign
from bench.experiments.compare import Missing
from bench.experiments.experiment import World, world
from bench.scenario import world_names
from bench.simulation.result import SimulationResult
from contracts.validation import InvalidSettingsError


class Player(NamedTuple):
    """A policy with settings over its defaults."""

    name: str
    policy: str
    settings: tuple[tuple[str, Any], ...] = ()


OURS: Final = Player("tail-aware", "tail-aware")
PLAYERS: Final = (
    OURS,
    Player("algorithm-1", "algorithm-1"),
    Player("algorithm-2", "algorithm-2"),
    Player("algorithm-2, f 0.8", "algorithm-2", (("policy.f_down", 0.8), ("policy.f_up", 0.8))),
    Player("keda-hpa, 100", "keda-hpa", (("policy.lag_threshold", 100),)),
    Player("keda-hpa, 50", "keda-hpa", (("policy.lag_threshold", 50),)),
    Player(
        "keda-hpa, 50, even",
        "keda-hpa",
        (("policy.ensure_even_distribution_of_partitions", True), ("policy.lag_threshold", 50)),
    ),
    Player("flink-ds2", "flink-ds2"),
    Player("flink-ds2, 0.45", "flink-ds2", (("policy.utilization_target", 0.45),)),
    Player("linear", "linear"),
)
MOST_STATIC: Final = 10
"""Constant counts up to so many, and up to the number of partitions."""
RANDOM: Final = {"burst_phase_s": "random"}
STANDARD: Final = (
    world("w1", RANDOM),
    world("w1", {**RANDOM, "split": "random"}),
    *(world("w1", {**RANDOM, "burst_period_s": period_s}) for period_s in (0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.3)),
    world("w1", {**RANDOM, "burst_jitter_s": 0.3}),
    world("w1", {"spacing": "smooth"}),
    world("w1", {"spacing": "poisson"}),
    world("w1-skew9", RANDOM),
    world("w3", RANDOM),
    world("w4", RANDOM),
    *map(world, ("hot-key", "step", "spike", "sine", "ramp", "silence")),
)


class FrontFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One player in one world; means over seeds."""

    world: str
    """Scenario, and what is set over it."""
    player: str
    seeds: int
    in_sla: float
    least_in_sla: float
    replica_minutes: float
    plan_changes: float
    moved: float
    beaten_by: str
    """Who keeps as many for less, or more for as much; of several the cheapest. Empty: nobody, it is on the front."""


def fronts(campaign: Campaign, worlds: Sequence[World], seeds: int) -> tuple[list[FrontFigures], list[Missing]]:
    """Run every player in every world; return a row each, and what failed."""
    asked = {
        (one, player.name): World(one.scenario, tuple(sorted({**dict(one.changes), **dict(player.settings)}.items())))
        .experiments(player.policy, seeds)
        for one in worlds
        for player in players(one)
    }  # fmt: skip
    outcomes = campaign.run(run for runs in asked.values() for run in runs)
    missing = [Missing(run=str(one), why=why) for one, why in outcomes.failed.items()]
    rows = []
    for one in worlds:
        ran = {name: [outcomes.results.get(run) for run in runs] for (of, name), runs in asked.items() if of == one}
        rows += list(judged(_name(one), {name: found for name, runs in ran.items() if (found := _all(runs))}))
    return rows, missing


def players(one: World) -> Iterator[Player]:
    """Yield all that take part in a world: as many constant counts as it has partitions."""
    yield from PLAYERS
    partitions = one.experiments(OURS.policy, 1)[0].question().payment.partitions
    for count in range(1, min(partitions, MOST_STATIC) + 1):
        yield Player(f"static-{count}", "static", (("initial_replicas", count),))


def judged(name: str, ran: dict[str, list[SimulationResult]]) -> Iterator[FrontFigures]:
    """Yield the means of each player, and who beats it."""
    means = {player: (fmean(one.in_sla for one in runs), _cost(runs)) for player, runs in ran.items()}
    for player, runs in ran.items():
        in_sla, cost = means[player]
        better = [
            (other_cost, other)
            for other, (other_in_sla, other_cost) in means.items()
            if other_in_sla >= in_sla and other_cost <= cost and (other_in_sla, -other_cost) != (in_sla, -cost)
        ]
        yield FrontFigures(
            world=name,
            player=player,
            seeds=len(runs),
            in_sla=in_sla,
            least_in_sla=min(one.in_sla for one in runs),
            replica_minutes=cost,
            plan_changes=fmean(one.scale_ups + one.scale_downs + one.reassignments for one in runs),
            moved=fmean(one.moved_partitions for one in runs),
            beaten_by=min(better)[1] if better else "",
        )


def _cost(runs: Iterable[SimulationResult]) -> float:
    return fmean(one.replica_minutes for one in runs)


def _all(runs: Sequence[SimulationResult | None]) -> list[SimulationResult]:
    """Return the results; none where one is missing: a mean over fewer seeds is no match for the others."""
    found = [one for one in runs if one is not None]
    return found if len(found) == len(runs) else []


def _name(one: World) -> str:
    return ", ".join((one.scenario, *(said for said in one.settings if said != "burst_phase_s=random")))


def all_worlds(asked: str = "") -> list[World]:
    """Return the standard worlds and the hard ones; asked: scenarios, separated by commas, none: all."""
    every = [*STANDARD, *map(world, world_names())]
    wanted = {one.strip() for one in asked.split(",") if one.strip()}
    if unknown := wanted - {one.scenario for one in every}:
        raise InvalidSettingsError([f"no world of the fronts is called {', '.join(sorted(unknown))}"])
    return [one for one in every if not wanted or one.scenario in wanted]
