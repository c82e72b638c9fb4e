"""The worlds and their goals. One set of defaults must reach them all."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from bench.experiments.compare import PolicyFigures
from bench.experiments.experiment import World, world

POLICY: Final = "tail-aware"
OTHERS: Final = ("algorithm-1", "algorithm-2", "linear", "keda-hpa", "flink-ds2")
"""What is in use, or published. Reference policies that must be told the load are no opponents."""


@dataclass(frozen=True, slots=True)
class Goal:
    """So many events in time, at no more than so much of the bound or so many replica-minutes; None: at any cost."""

    world: World
    in_sla: float
    packing_ratio: float | None = None
    replica_minutes: float | None = None

    def reached(self, in_sla: float, packing_ratio: float, replica_minutes: float) -> bool:
        """Tell whether these means keep it."""
        return (
            in_sla >= self.in_sla
            and packing_ratio <= (self.packing_ratio or float("inf"))
            and replica_minutes <= (self.replica_minutes or float("inf"))
        )

    def __str__(self) -> str:
        cost = f" at ≤ {self.packing_ratio:g} ×" if self.packing_ratio else ""
        cost += f" at ≤ {self.replica_minutes:g} r-m" if self.replica_minutes else ""
        return f"≥ {100 * self.in_sla:g} %{cost}"


def _goal(scenario: str, in_sla: float, packing_ratio: float | None = None, /, **changes: Any) -> Goal:
    return Goal(world(scenario, changes), in_sla, packing_ratio)


GOALS: Final = (
    _goal("w1", 0.999, 1.02),
    _goal("w1", 0.999, 1.12, split="random"),
    Goal(world("w1", {"rebalance_time_s": 2}), 0.995, replica_minutes=36),
    _goal("w1-skew9", 0.999, 1.05),
    _goal("taxi", 0.999, 1.02),
    _goal("taxi-skew9", 0.999, 1.05),
    _goal("w3", 1.0, 1.01),
    _goal("w4", 1.0, 1.02),
    _goal("w1", 0.999, 1.05, spacing="smooth"),
    _goal("w1", 0.999, 1.08, spacing="poisson"),
    _goal("taxi", 0.995, startup_s="gke", initial_replicas=3),
    _goal("taxi", 0.995, startup_s="gke"),
    _goal("hot-key", 0.999),
    _goal("step", 0.999),
    _goal("spike", 0.999),
    _goal("sine", 0.999),
    _goal("ramp", 0.999),
    _goal("silence", 0.999),
    _goal("diurnal-week", 0.999),
)


def checked(goals: Iterable[Goal], rows: Iterable[PolicyFigures]) -> Iterator[tuple[Goal, PolicyFigures | None, bool]]:
    """Yield each goal, what tail-aware came to in its world, None without a result, and whether that reaches it."""
    ours = {(row.scenario, row.settings): row for row in rows if row.policy == POLICY}
    for goal in goals:
        row = ours.get((goal.world.scenario, goal.world.settings))
        figures = () if row is None else (row.in_sla.mean, row.packing_ratio.mean, row.replica_minutes.mean)
        yield goal, row, bool(figures) and goal.reached(*figures)
