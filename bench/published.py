"""What the papers printed, to stand beside what we measure."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Published:
    """One row of a paper's table. in_sla is a share; replica_minutes as printed."""

    in_sla: float
    replica_minutes: float
    scale_ups: int | None
    scale_downs: int | None


CLOSER_2024: Final[dict[tuple[str, str], Published]] = {
    ("w1", "algorithm-2"): Published(0.974, 30.21, 6, 6),
    ("w1", "linear"): Published(0.947, 25.5, 6, 6),
    ("w1-skew9", "algorithm-2"): Published(0.989, 29.8, None, None),
    ("w1-skew9", "linear"): Published(0.847, 25.5, None, None),
}
"""(scenario, policy) → Ezzeddine, Baude, Huet, CLOSER 2024: W = 0.5 s, nominal μ = 200 events/s."""
