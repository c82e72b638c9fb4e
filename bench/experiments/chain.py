"""A chain scaled as one, beside each of its groups scaled by itself: the same events, seed by seed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from bench import markdown
from bench.experiments.campaign import Campaign
from bench.experiments.experiment import Experiment, World, experiment, world
from bench.picture import COLORS, picture
from bench.scenario import load_scenario
from bench.simulation.chain import ChainResult, run_chain
from report.statistics import Against, bootstrap_interval, paired_difference
from report.wording import minutes, share

NAME: Final = "chain"
POLICY: Final = "tail-aware"
BURSTS: Final = {"load.spacing": "burst", "load.burst_phase_s": "random", "simulation.startup_s": 0.0}
WORLDS: Final[dict[str, World]] = {
    "spike": world(NAME),
    "spike with starts of 10 s": world(NAME, {"simulation.startup_s": 10.0}),
    "step": world(NAME, {"load.workload": "step"}),
    "sine": world(NAME, {"load.workload": "sine"}),
    "sine with two parcels an order": world(
        NAME, {"load.workload": "sine", "stages.shipment.branching": 2.0, "stages.shipment.partitions": 10}
    ),
    "w1": world(NAME, {"load.workload": "w1"}),
    "w1 in bursts": world(NAME, {"load.workload": "w1", **BURSTS}),
    "w1 in bursts with W in halves": world(NAME, {"load.workload": "w1", **BURSTS, "stages.shipment.share": 0.5}),
}
"""In words → the scenario with what is set over it."""
FEWEST: Final = 3
"""Runs, of which an interval is said: one says nothing of chance, two next to nothing."""
FIGURES: Final = ("in_sla", "p999_s", "max_s", "replica_minutes")


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """Means over seeds, end to end."""

    in_sla: float
    p999_s: float
    max_s: float
    """The mean of each run's longest latency, and …"""
    worst_s: float
    """… the longest of all."""
    replica_minutes: float


class ChainRow(msgspec.Struct, frozen=True, kw_only=True):
    """One world, both ways; differences are those of the chain scaled as one minus blind, paired by seed."""

    world: str
    settings: tuple[str, ...]
    seeds: int
    blind: Side
    as_one: Side
    differences: dict[str, Against]
    """By figure."""


def place(row: ChainRow) -> int:
    """Return where the row stands in the table."""
    return list(WORLDS).index(row.world)


def simulated_chain(one: Experiment) -> ChainResult:
    """Run the experiment. Raises InvalidSettingsError."""
    return run_chain(one.question())[2]


def compare_ways(running: Campaign[ChainResult], worlds: Sequence[str], seeds: int) -> list[ChainRow]:
    """Simulate each world both ways with seeds 1, 2, …; the campaign's work must be `simulated_chain`.

    Raises InvalidSettingsError where one cannot be simulated.
    """
    asked = {
        (name, as_one): [
            experiment(
                WORLDS[name].scenario,
                POLICY,
                seed=seed,
                changes={**dict(WORLDS[name].changes), "chain.coordinated": as_one},
            )
            for seed in range(1, seeds + 1)
        ]
        for name in worlds
        for as_one in (False, True)
    }
    came = running.results(one for some in asked.values() for one in some)
    return [
        side_by_side(name, WORLDS[name].settings, *([came[one] for one in asked[name, way]] for way in (False, True)))
        for name in worlds
    ]


def side_by_side(
    world: str, settings: tuple[str, ...], blind: Sequence[ChainResult], as_one: Sequence[ChainResult]
) -> ChainRow:
    """Return the row of runs that are pairs, one by one."""
    return ChainRow(
        world=world,
        settings=settings,
        seeds=len(blind),
        blind=_side(blind),
        as_one=_side(as_one),
        differences={figure: paired_difference(_values(as_one, figure), _values(blind, figure)) for figure in FIGURES},
    )


def _side(results: Sequence[ChainResult]) -> Side:
    means: dict[str, Any] = {figure: bootstrap_interval(_values(results, figure)).mean for figure in FIGURES}
    return Side(**means, worst_s=max(_values(results, "max_s")))


def _values(results: Sequence[ChainResult], figure: str) -> list[float]:
    return [getattr(one, figure) or 0.0 for one in results]


def _difference(figure: str, times: float, digits: int) -> Callable[[ChainRow], str]:
    def said(row: ChainRow) -> str:
        found = row.differences[figure]
        mean = f"{times * found.mean:+.{digits}f}"
        if row.seeds < FEWEST:
            return mean
        low, high = (f"{times * end:+.{digits}f}" for end in (found.low, found.high))
        sure = "" if found.distinguishable else ", no difference"
        return f"{mean} ({low} to {high}{sure})"

    return said


COLUMNS: Final[markdown.Columns] = {
    "load": lambda row: row.world,
    "in SLA, blind": lambda row: share(row.blind.in_sla),
    "as one": lambda row: share(row.as_one.in_sla),
    "points": _difference("in_sla", 100, 2),
    "p99.9, s": lambda row: f"{row.blind.p999_s:.2f} → {row.as_one.p999_s:.2f}",
    "peak, s": lambda row: f"{row.blind.max_s:.2f} → {row.as_one.max_s:.2f}",
    "difference, s": _difference("max_s", 1, 2),
    "r-m": lambda row: f"{minutes(row.blind.replica_minutes)} → {minutes(row.as_one.replica_minutes)}",
    "difference": _difference("replica_minutes", 1, 2),
}


SHOWN_S: Final = (140, 190)
"""Of the spike world: before its first surge until after it."""


def draw_chain(path: Path) -> None:
    """Write the picture of one surge, scaled both ways, as an SVG file."""
    first_s, last_s = SHOWN_S
    edges_us = np.arange(first_s, last_s + 1) * 1_000_000
    with picture(path, 8, 5.2) as figure:
        rates, replicas, latencies = figure.subplots(3, 1, sharex=True)
        for number, (as_one, label) in enumerate(((False, "each stage by itself"), (True, "as one"))):
            color = COLORS[1 - number]
            runs, took_us, _ = run_chain(load_scenario(NAME, {"chain.coordinated": as_one, "duration_s": last_s + 10}))
            payment, shipment = runs
            if not number:
                arrive, leave = (
                    np.histogram(times_us, edges_us)[0]
                    for times_us in (payment.events.intended_us, payment.events.done_us)
                )
                rates.step(edges_us[:-1] / 1e6, arrive, where="post", color="#888888", label="arrive at Payment")
                rates.step(edges_us[:-1] / 1e6, leave, where="post", color=COLORS[2], label="leave it for Shipment")
            at_us, counts = np.array([*shipment.requested, (last_s * 1_000_000, shipment.requested[-1][1])]).T
            replicas.step(at_us / 1e6, counts + 0.05 * number, where="post", color=color, label=label)
            second = np.digitize(payment.events.intended_us, edges_us) - 1
            longest = [took_us[second == one].max(initial=0) / 1e6 for one in range(last_s - first_s)]
            latencies.step(edges_us[:-1] / 1e6, longest, where="post", color=color, label=label)
        latencies.axhline(1.0, color="#888888", linestyle=":", linewidth=1)
        for axes, what in (
            (rates, "events/s"),
            (replicas, "Shipment replicas\nrequested"),
            (latencies, "longest latency of the\nsecond, end to end, s"),
        ):
            axes.set_ylabel(what)
            axes.legend(loc="lower right" if axes is replicas else "upper right", fontsize=8)
        latencies.set(xlabel="s", xlim=SHOWN_S)
