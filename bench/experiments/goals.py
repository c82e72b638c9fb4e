"""The worlds and their goals. One set of defaults must reach them all."""

from dataclasses import dataclass
from typing import Any, Final

from bench.experiments.experiment import World, world
from report.statistics import Interval

POLICY: Final = "tail-aware"
OTHERS: Final = ("algorithm-1", "algorithm-2", "linear", "keda-hpa", "flink-ds2")
"""What is in use, or published. Reference policies that must be told the load are no opponents."""


@dataclass(frozen=True, slots=True)
class Goal:
    """So many events in time, at no more than so much of the bound or so many replica-minutes; None: at any cost."""

    world: World
    in_sla: float
    bound_ratio: float | None = None
    replica_minutes: float | None = None

    def reached(self, in_sla: Interval, bound_ratio: Interval, replica_minutes: Interval) -> bool:
        """Tell whether the means keep it."""
        return (
            in_sla.mean >= self.in_sla
            and bound_ratio.mean <= (self.bound_ratio or float("inf"))
            and replica_minutes.mean <= (self.replica_minutes or float("inf"))
        )

    def __str__(self) -> str:
        cost = f" at ≤ {self.bound_ratio:g} ×" if self.bound_ratio else ""
        cost += f" at ≤ {self.replica_minutes:g} r-m" if self.replica_minutes else ""
        return f"≥ {100 * self.in_sla:g} %{cost}"


def _goal(scenario: str, in_sla: float, bound_ratio: float | None = None, /, **changes: Any) -> Goal:
    return Goal(world(scenario, changes), in_sla, bound_ratio)


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
