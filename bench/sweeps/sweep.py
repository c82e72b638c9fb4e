"""A sweep: scenarios at every point of an axis, under a few policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bench.comparison.campaign import Campaign
from bench.comparison.compare import Missing, World, compare, world
from bench.comparison.rows import PolicyFigures


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
    scenarios: tuple[str, ...]
    policies: tuple[str, ...]


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


def points(key: str, values: Sequence[Any], *, series: str = "", also: Mapping[str, Any] | None = None) -> list[Point]:
    """Return a point for each value of one setting.

    also: set at every point of this line.
    """
    return [Point(f"{value}", tuple({**(also or {}), key: value}.items()), series) for value in values]


def run(campaign: Campaign, sweep: Sweep, *, seeds: int) -> SweepResult:
    """Run every policy at every point, with as many seeds where anything is random."""
    worlds = {(scenario, point): _world(scenario, point) for scenario in sweep.scenarios for point in sweep.points}
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


def _world(scenario: str, point: Point) -> World:
    return world(scenario, dict(point.changes))
