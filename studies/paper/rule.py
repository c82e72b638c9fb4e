"""The rule by which a printed figure is reproduced or differs, figure by figure."""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from bench.simulation.result import SimulationResult
from report.wording import share

SHARE: Final = 0.01
COST: Final = 0.03
ACTIONS: Final = 1
FACT: Final = 0.005
RULE: Final = (
    "**Reproduced**: under one and the same reading of what was run, every printed figure lies within the range of "
    f"our seeds, widened by {100 * SHARE:g} point of events in SLA, {100 * COST:g} % of replica-minutes, {ACTIONS} "
    f"scale action. Figures that need no run: within {100 * FACT:g} %. A conclusion (`A > B`): seed by seed, a "
    "reading that both rows share says so beyond chance (95 %), and none says the opposite. **Differs**: otherwise; "
    "the nearest reading is shown. **Cannot be checked**: it was measured with what nobody else has."
)


def _ours_in_sla(shares: Sequence[float]) -> str:
    spread = f" ({share(min(shares))} to {share(max(shares))})" if max(shares) - min(shares) >= 0.00005 else ""
    return f"{share(fmean(shares))}{spread}"


class _Rule(NamedTuple):
    """How a figure is said, and how far a printed one may lie outside the range of ours to be the same."""

    printed: Callable[[Any], str]
    ours: Callable[[Sequence[float]], str]
    off: Callable[[float], str]
    tolerance: float


RULES: Final = {
    "in_sla": _Rule(share, _ours_in_sla, lambda off: f"in SLA {points(off)}", SHARE),
    "replica_minutes": _Rule(
        "{:g} r-m".format, lambda found: f"{fmean(found):.4g} r-m", lambda off: f"r-m {100 * off:+.1f} %", COST
    ),
    "scale_ups": _Rule("{} ups".format, lambda found: f"{fmean(found):.3g} ups", "scale-ups {:+g}".format, ACTIONS),
    "scale_downs": _Rule(
        "{} downs".format, lambda found: f"{fmean(found):.3g} downs", "scale-downs {:+g}".format, ACTIONS
    ),
    "max_below_s": _Rule(
        "worst < {:g} s".format, lambda found: f"worst {max(found):.2f} s", "worst event {:+.2f} s".format, 1e-9
    ),
}
"""Field of `Published` → its rule. Replica-minutes are off by a share of what was printed."""


def value_of(name: str, one: SimulationResult) -> float:
    """Return our figure beside the printed one of that name."""
    return (one.max_s or 0.0) if name == "max_below_s" else float(getattr(one, name))


def off_by(name: str, printed: float, results: Iterable[SimulationResult]) -> float:
    """Return by how much the nearest of ours lies above (+) or below (−) what was printed; 0 inside the range."""
    found = [value_of(name, one) for one in results]
    if name == "max_below_s":
        return max(0.0, max(found) - printed)
    nearest = min(max(printed, min(found)), max(found))
    return (nearest - printed) / (printed if name == "replica_minutes" else 1)


def points(difference: float) -> str:
    """Say a difference of two shares of events."""
    return f"{100 * difference:+.1f} points"
