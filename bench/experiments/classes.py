"""Replicas of two classes, 100 and 250 events/s: a choice among both, beside one of them alone, and beside not knowing.

The rates are those of the follow-up of CLOSER 2024. Prices are per minute, of a small one 1.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bench import markdown
from bench.experiments.campaign import Simulations
from bench.experiments.experiment import Experiment, World, world
from bench.simulation.result import SimulationResult
from report.statistics import Interval, bootstrap_interval
from report.wording import minutes, share

NAME: Final = "classes"
RANDOM: Final = {"load.burst_phase_s": "random", "payment.service_time_s": 0.01}
WORLDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "w1": ("w1", RANDOM),
    "w1, random split": ("w1", RANDOM | {"simulation.split": "random"}),
    "w1-skew9": ("w1-skew9", RANDOM),
    "taxi, its first day": ("taxi", RANDOM | {"duration_s": 2160}),
    "taxi": ("taxi", RANDOM),
}
CHOICE: Final = "small 1 1, large 2.5 2.5"
FLEETS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "small alone": ("tail-aware", {"payment.classes": "small 1 1"}),
    "large alone": ("tail-aware", {"payment.classes": "large 2.5 2.5"}),
    "a choice": ("tail-aware", {"payment.classes": CHOICE}),
    "large alone, 12 % cheaper": ("tail-aware", {"payment.classes": "large 2.5 2.2"}),
    "a choice, large 12 % cheaper": ("tail-aware", {"payment.classes": "small 1 1, large 2.5 2.2"}),
    "every other one large, each μ known": ("tail-aware", {"simulation.speeds": (1.0, 2.5)}),
    "every other one large, taken for alike": (
        "tail-aware",
        {"simulation.speeds": (1.0, 2.5), "payment.rates_alike": True},
    ),
}
"""In words → policy and settings. In the last two nobody chooses: machines are as they come."""
BESIDE: Final = {"a choice": "large alone", "a choice, large 12 % cheaper": "large alone, 12 % cheaper"}


class ClassesRow(msgspec.Struct, frozen=True, kw_only=True):
    """One fleet in one world, over seeds."""

    world: str
    fleet: str
    policy: str
    settings: tuple[str, ...]
    seeds: int
    in_sla: float
    least_in_sla: float
    replica_minutes: float
    priced_minutes: Interval
    plan_changes: float
    saved: Interval | None = None
    """Share of the price that is saved against large ones alone, paired by seed."""


def place(row: ClassesRow) -> tuple[int, int]:
    """Return where a row stands among all."""
    return list(WORLDS).index(row.world), list(FLEETS).index(row.fleet)


def compare_fleets(running: Simulations, worlds: Sequence[str], fleets: Sequence[str], seeds: int) -> list[ClassesRow]:
    """Simulate fleets, and those that they stand beside, in each world with seeds 1, 2, …

    Raises InvalidSettingsError where one fails.
    """
    wanted = [one for one in FLEETS if one in fleets or one in {BESIDE.get(fleet) for fleet in fleets}]
    asked = {
        (name, fleet): _world(name, fleet).experiments(FLEETS[fleet][0], seeds) for name in worlds for fleet in wanted
    }
    found = running.results(one for some in asked.values() for one in some)
    return [_row(name, fleet, asked, found) for name, fleet in asked]


def _world(name: str, fleet: str) -> World:
    scenario, changes = WORLDS[name]
    return world(scenario, changes | FLEETS[fleet][1])


def _row(
    name: str,
    fleet: str,
    asked: dict[tuple[str, str], list[Experiment]],
    results: dict[Experiment, SimulationResult],
) -> ClassesRow:
    own = [results[one] for one in asked[name, fleet]]
    price = [one.priced_minutes for one in own]
    other = [results[one].priced_minutes for one in asked[name, BESIDE[fleet]]] if fleet in BESIDE else []
    saved = [1 - ours / alone for ours, alone in zip(price, other, strict=True)] if other else []
    return ClassesRow(
        world=name,
        fleet=fleet,
        policy=FLEETS[fleet][0],
        settings=_world(name, fleet).settings,
        seeds=len(own),
        in_sla=sum(one.in_sla for one in own) / len(own),
        least_in_sla=min(one.in_sla for one in own),
        replica_minutes=sum(one.replica_minutes for one in own) / len(own),
        priced_minutes=bootstrap_interval(price),
        plan_changes=sum(one.plan_changes for one in own) / len(own),
        saved=bootstrap_interval(saved) if saved else None,
    )


def _saved(row: ClassesRow) -> str:
    found = row.saved
    return "" if found is None else f"{100 * found.mean:.1f} % ({100 * found.low:.1f} to {100 * found.high:.1f})"


COLUMNS: Final[markdown.Columns] = {
    "load": lambda row: row.world,
    "replicas": lambda row: row.fleet,
    "policy": lambda row: row.policy,
    "in SLA": lambda row: f"{share(row.in_sla)} (least {share(row.least_in_sla)})",
    "replica-minutes": lambda row: minutes(row.replica_minutes),
    "at their prices": lambda row: minutes(row.priced_minutes.mean),
    "saved": _saved,
    "plan changes": lambda row: f"{row.plan_changes:.0f}",
}
