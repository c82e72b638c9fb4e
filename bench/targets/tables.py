"""The table of goals in docs/model.md."""

from collections.abc import Callable, Sequence
from typing import Final

from bench.comparison.rows import PolicyFigures
from bench.figures import TargetRow, load
from bench.markdown import table
from bench.targets.catalogue import GOALS, POLICY, Goal


def targets() -> str:
    """Return each goal, what was reached, and the cheapest other policy that keeps as many events in time."""
    found = load(TargetRow)
    rows = [cells for goal in GOALS if (cells := _cells(goal, _of(goal, found)))]
    header = ("scenario", "goal", "in SLA %", "r-m (× bound)", "reached", "cheapest other that keeps that promise")
    return table(header, rows, (row.origin for row in found))


def _of(goal: Goal, rows: Sequence[TargetRow]) -> list[TargetRow]:
    return [row for row in rows if (row.scenario, row.settings) == (goal.world.scenario, goal.world.settings)]


def _cells(goal: Goal, rows: Sequence[PolicyFigures]) -> tuple[str, ...] | None:
    ours = next((row for row in rows if row.policy == POLICY), None)
    if ours is None:
        return None
    reached = goal.reached(ours.in_sla, ours.bound_ratio, ours.replica_minutes)
    keeping = [row for row in rows if row.policy != POLICY and row.in_sla.mean >= goal.in_sla]
    other = min(keeping, key=lambda row: row.replica_minutes.mean, default=None)
    return (
        ", ".join((goal.world.scenario, *goal.world.settings)) + (f" ({ours.seeds} seeds)" if ours.seeds > 1 else ""),
        str(goal),
        _share(ours),
        _cost(ours),
        "yes" if reached else "**no**",
        f"{other.policy}: {_cost(other)}" if other else "none",
    )


def _share(row: PolicyFigures) -> str:
    spread = f" [{100 * row.in_sla.low:.3f}, {100 * row.in_sla.high:.3f}]" if row.seeds > 1 else ""
    return f"{100 * row.in_sla.mean:.3f}{spread}"


def _cost(row: PolicyFigures) -> str:
    spread = f" [{row.bound_ratio.low:.3f}, {row.bound_ratio.high:.3f}]" if row.seeds > 1 else ""
    return f"{row.replica_minutes.mean:.2f} ({row.bound_ratio.mean:.3f}{spread})"


TARGET_TABLES: Final[dict[str, Callable[[], str]]] = {"targets": targets}
