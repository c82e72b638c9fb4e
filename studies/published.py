"""What the papers printed, to stand beside what we measure, and what comes of it."""

from dataclasses import dataclass
from typing import Final

import msgspec

REPRODUCED: Final = "reproduced"
DIFFERS: Final = "differs"
UNKNOWN: Final = "cannot be checked"


class Claim(msgspec.Struct, frozen=True):
    """A statement of the paper beside what we find."""

    claim: str
    published: str
    ours: str
    verdict: str
    """reproduced, differs or cannot be checked."""


@dataclass(frozen=True, slots=True)
class Published:
    """One row of a paper's table. in_sla is a share; replica_minutes as printed; None: not printed."""

    in_sla: float
    replica_minutes: float | None
    scale_ups: int | None = None
    scale_downs: int | None = None
    max_below_s: float | None = None
    """No event took so long, seconds."""
    elsewhere: str = ""
    """What the same paper prints of the same run in another place."""


CLOSER_2024: Final[dict[tuple[str, str], Published]] = {
    ("w1", "algorithm-2"): Published(0.974, 30.21, 6, 6),
    ("w1", "linear"): Published(0.947, 25.5, 6, 6, elsewhere="93.9 %"),
    ("w1", "paper-optimal"): Published(1.0, 32.7, 6, 6),
    ("w1", "overprovisioned"): Published(1.0, 50.0, 0, 0),
    ("taxi", "algorithm-2"): Published(0.989, 402.9, 20, 16),
    ("taxi", "linear"): Published(0.954, 325.7, 23, 20),
    ("taxi", "paper-optimal"): Published(1.0, 414.11, 20, 16),
    ("taxi", "overprovisioned"): Published(1.0, 600.0, 0, 0),
    ("w1-skew9", "algorithm-2"): Published(0.989, 29.8),
    ("w1-skew9", "linear"): Published(0.847, 25.5),
    ("taxi-skew9", "algorithm-2"): Published(0.9908, 392.15),
    ("taxi-skew9", "linear"): Published(0.859, 329.7),
}
"""(scenario, policy) → Ezzeddine, Baude, Huet, CLOSER 2024: W = 0.5 s, nominal μ = 200 events/s."""

CLOSER_2024_HEARTBEAT: Final[dict[tuple[str, float], Published]] = {
    ("w1", 3.0): Published(0.974, None),
    ("w1", 0.5): Published(0.981, None, max_below_s=1.0),
    ("taxi", 3.0): Published(0.989, None),
    ("taxi", 0.5): Published(0.9907, None),
}
"""(scenario, heartbeat interval in s) → the same under Algorithm 2."""

CLOSER_2024_REBALANCE: Final[dict[tuple[float, str], Published]] = {
    (0.5, "algorithm-1"): Published(0.901, 33.85),
    (0.5, "algorithm-2"): Published(0.982, 34.61),
    (2.0, "algorithm-1"): Published(0.854, 34.16, elsewhere="85.6 %"),
    (2.0, "algorithm-2"): Published(0.994, 44.7),
}
"""(t_r in s, policy) → the same on W1, each rebalance made to last as long."""

LOAD_AWARE: Final = "load-aware"
STICKY: Final = "sticky"
ICCBDC_2022: Final[dict[tuple[str, str, float], Published]] = {
    ("w3", LOAD_AWARE, 1.0): Published(1.0, 18.0),
    ("w3", STICKY, 1.0): Published(0.44, None),
    ("w4", LOAD_AWARE, 1.0): Published(1.0, 26.1),
    ("w4", STICKY, 1.0): Published(0.77, None),
    ("w4", LOAD_AWARE, 30.0): Published(0.86, None),
}
"""(scenario, who assigns, decision interval in s) → Ezzeddine, Migliorini, Baude, Huet, ICCBDC 2022: W = 5 s, μ 95.
Sticky is run with the same counts, and so has the same replica-minutes."""
