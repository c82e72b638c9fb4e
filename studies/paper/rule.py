"""The rule by which a printed figure is reproduced or differs, figure by figure."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from bench.simulation.result import SimulationResult
from report.wording import share
from studies.packing.claims import TOLERANCE

SHARE: Final = 0.01
COST: Final = 0.03
ACTIONS: Final = 1
FACT: Final = 0.005
ROUNDING: Final = 1e-12
RULE: Final = (
    "**Reproduced**: all rows of a paper are judged under one reading of what was run, the one under which most of "
    "them hold; and a row holds where one of our seeds has every printed figure at once: in SLA within "
    f"{100 * SHARE:g} point, replica-minutes within {100 * COST:g} %, replicas added (ups) and removed (downs) "
    f"within {ACTIONS}. Figures that need no run: within {100 * FACT:g} %. A difference (`A > B`): that of one seed "
    f"lies within {100 * SHARE:g} point of the printed one. The packing paper: within the range of our streams, "
    f"widened by {100 * TOLERANCE:g} points. **Differs**: otherwise; what the nearest seed misses is said. **Cannot be "
    "checked**: it was measured with what nobody else has. Only what is printed counts as a paper's figure."
)


def _ours_in_sla(shares: Sequence[float]) -> str:
    spread = f" ({share(min(shares))} to {share(max(shares))})" if max(shares) - min(shares) >= 0.00005 else ""
    return f"{share(fmean(shares))}{spread}"


class _Rule(NamedTuple):
    """How a figure is said, and how far a printed one may lie from that of a seed to be the same."""

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


OURS: Final = {"scale_ups": "replicas_added", "scale_downs": "replicas_removed", "max_below_s": "max_s"}
"""Field of `Published` → field of a result, where that has another name. The printed ups and downs differ by what the
count of replicas grew by over the run, so they count replicas and not decisions."""


def value_of(name: str, one: SimulationResult) -> float:
    """Return our figure beside the printed one of that name."""
    return float(getattr(one, OURS.get(name, name)) or 0.0)


def off_by(name: str, printed: float, one: SimulationResult) -> float:
    """Return by how much ours lies above (+) or below (−) what was printed."""
    off = value_of(name, one) - printed
    return max(0.0, off) if name == "max_below_s" else off / (printed if name == "replica_minutes" else 1)


def misses(printed: Mapping[str, float], one: SimulationResult) -> dict[str, float]:
    """Return the figures of a run that are too far off, by name."""
    off = {name: off_by(name, value, one) for name, value in printed.items()}
    return {name: by for name, by in off.items() if abs(by) > RULES[name].tolerance + ROUNDING}


def distance(printed: Mapping[str, float], one: SimulationResult) -> float:
    """Return how far a run is from what was printed, in tolerances of the figure that is off most."""
    return max(abs(off_by(name, value, one)) / RULES[name].tolerance for name, value in printed.items())


def points(difference: float) -> str:
    """Say a difference of two shares of events."""
    return f"{100 * difference:+.1f} points"
