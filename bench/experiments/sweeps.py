"""Sweeps: one setting over a range. Where a policy stops keeping its promise, and what it costs until there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bench.experiments.campaign import Missing, Simulations
from bench.experiments.compare import PolicyFigures, compare
from bench.experiments.experiment import world

OWNERS: Final = ("tail-aware", "algorithm-2", "algorithm-1")
"""Policies that place partitions: what a handover costs concerns them most."""
ALL_KINDS: Final = ("tail-aware", "algorithm-2", "linear", "keda-hpa", "flink-ds2")
F_UP: Final = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
F_DOWN: Final = (0.2, 0.4, 0.6, 0.8)
T_R_S: Final = (0, 0.05, 0.1, 0.2, 0.5, 1, 2)


@dataclass(frozen=True, slots=True)
class Point:
    """One place on the axis."""

    label: str
    changes: tuple[tuple[str, Any], ...]
    """Key → value over the scenario's."""
    series: str = ""
    """What tells points with the same label apart: they belong to different lines."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One question, answered by one page."""

    name: str
    title: str
    asks: str
    axis: str
    """What the labels of the points are, with their unit."""
    points: tuple[Point, ...]
    scenarios: tuple[str, ...] = ("w1",)
    policies: tuple[str, ...] = ALL_KINDS


class SweepFigures(PolicyFigures, frozen=True, kw_only=True):
    """One policy at one point."""

    sweep: str
    point: str
    series: str


class SweepResult(msgspec.Struct, frozen=True, kw_only=True):
    """All rows by scenario, point and policy, and the runs that failed."""

    sweep: str
    rows: tuple[SweepFigures, ...]
    missing: tuple[Missing, ...]


def points(key: str, values: Sequence[Any], *, series: str = "", **also: Any) -> tuple[Point, ...]:
    """Return a point for each value of one setting. also: set at every point of this line."""
    return tuple(Point(f"{value}", tuple({**also, key: value}.items()), series) for value in values)


def run(campaign: Simulations, sweep: Sweep, *, seeds: int) -> SweepResult:
    """Run every policy at every point, with as many seeds where anything is random."""
    worlds = {
        (scenario, point): world(scenario, dict(point.changes))
        for scenario in sweep.scenarios
        for point in sweep.points
    }
    found = compare(campaign, worlds=list(dict.fromkeys(worlds.values())), policies=sweep.policies, seeds=seeds)
    by_world: dict[tuple[str, tuple[str, ...]], list[PolicyFigures]] = {}
    for row in found.rows:
        by_world.setdefault((row.scenario, row.settings), []).append(row)
    rows = [
        SweepFigures(**msgspec.structs.asdict(row), sweep=sweep.name, point=point.label, series=point.series)
        for (scenario, point), one in worlds.items()
        for row in by_world.get((scenario, one.settings), ())
    ]
    return SweepResult(sweep=sweep.name, rows=tuple(rows), missing=found.missing)


_ALL: Final = (
    Sweep(
        name="f",
        title="Shares of a replica that a plan may use",
        asks="What do (f_up, f_down) of the papers buy: fewer late events, or fewer replicas?",
        axis="f_up",
        points=tuple(
            point
            for down in F_DOWN
            for point in points("f_up", [up for up in F_UP if up >= down], series=f"f_down = {down}", f_down=down)
        ),
        scenarios=("w1", "w1-skew9"),
        policies=("algorithm-2",),
    ),
    Sweep(
        name="decision-interval",
        title="Seconds between two decisions",
        asks="How often must a policy look?",
        axis="decision_interval_s",
        points=points("decision_interval_s", (0.5, 1, 2, 5, 10, 15, 30, 60)),
        scenarios=("w1", "w4"),
        policies=("tail-aware", "algorithm-2", "linear", "ffd-2022"),
    ),
    Sweep(
        name="rebalance-time",
        title="What a change of owner costs",
        asks="From which t_r on is every change of owner a tail, and who knows it?",
        axis="t_r, s",
        points=points("rebalance_time_s", T_R_S, series="incremental", delivery="incremental")
        + points("rebalance_time_s", T_R_S, series="eager", delivery="eager"),
        policies=OWNERS,
    ),
    Sweep(
        name="startup",
        title="Seconds until a new replica serves",
        asks="Who sees the load coming, when help takes its time?",
        axis="startup_s",
        points=points("startup_s", (0, 2, 5, 10, 20, 30, 60, "gke")),
        scenarios=("taxi", "w1"),
    ),
    Sweep(
        name="burstiness",
        title="How events lie inside a second",
        asks="The papers send each second's events at once. What remains when they come as in life?",
        axis="arrivals and service",
        points=(
            Point("smooth", (("spacing", "smooth"),)),
            Point("poisson", (("spacing", "poisson"),)),
            Point("poisson, exponential service", (("spacing", "poisson"), ("distribution", "exponential"))),
            Point("poisson, Pareto service", (("spacing", "poisson"), ("distribution", "pareto"))),
            Point("burst", (("spacing", "burst"),)),
            Point("burst, random split", (("spacing", "burst"), ("split", "random"))),
        ),
    ),
    Sweep(
        name="burst-phase",
        title="When bursts come within the second",
        asks="Decisions are made 0.1 s after each full second. Who depends on how long after a burst that is?",
        axis="burst_phase_s",
        points=points("burst_phase_s", (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)),
    ),
    Sweep(
        name="burst-period",
        title="Seconds from one burst to the next",
        asks="And when bursts drift against the decisions?",
        axis="burst_period_s",
        points=points("burst_period_s", (0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3)),
    ),
    Sweep(
        name="burst-jitter",
        title="Bursts that are not on time",
        asks="Each burst comes later by a random time, at a random phase. What remains of the promise?",
        axis="burst_jitter_s",
        points=points("burst_jitter_s", (0, 0.1, 0.2, 0.3, 0.5), burst_phase_s="random"),
    ),
    Sweep(
        name="service-rate-error",
        title="μ told wrong",
        asks="Policies are told a μ that is so much too high. Who learns from what really was late?",
        axis="service_rate_error",
        points=points("service_rate_error", (-0.3, -0.15, 0, 0.15, 0.3), burst_phase_s="random"),
    ),
    Sweep(
        name="observation-delay",
        title="Seconds until offsets are seen",
        asks="Decisions are made on what was. From which age on do they come too late?",
        axis="observation_delay_s",
        points=points("observation_delay_s", (0, 0.1, 0.3, 1, 2), burst_phase_s="random"),
    ),
    Sweep(
        name="partitions",
        title="Number of partitions",
        asks="The same events over more partitions: finer to pack, more to move.",
        axis="partitions",
        points=points("partitions", (5, 10, 20, 50, 100, 200), split="random"),
    ),
)
SWEEPS: Final[dict[str, Sweep]] = {one.name: one for one in _ALL}
