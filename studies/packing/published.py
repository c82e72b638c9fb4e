"""What Landau, Saurabh, Andrade, Barbosa 2024 (arXiv:2402.06085) printed. Shares, not per cent."""

from dataclasses import dataclass
from typing import Final

SOURCE: Final = "Landau et al. 2024, arXiv:2402.06085"


@dataclass(frozen=True, slots=True)
class Headline:
    """MWF beside the algorithm that was there before and moves least. One stream stands behind each figure."""

    rscore_change: float
    """Against the smallest Rscore of the eight existing algorithms."""
    cbs: float
    """Consumers above the least of each iteration: another baseline than that of the Rscore."""


HEADLINES: Final[dict[int, Headline]] = {5: Headline(-0.55, 0.118), 25: Headline(-0.24, 0.088)}
"""By delta."""
PARTITIONS: Final = 200
"""Of those streams: the paper does not say so, its data do."""
ALWAYS_ON_FRONT: Final = ("mbf", "mbfp", "mwf")

ROUND_ROBIN_P90_S: Final[dict[int, float | None]] = {15: 217.33, 24: 2.70, 30: 1.11, 31: None, 32: None}
"""n of kd_n → 90th percentile of the delayed events on the one stream of section VI-C; None: nothing was delayed."""
MWF_P90_S: Final = 4.52
MWF_CONSUMERS: Final = 15
LATENCY_PARTITIONS: Final = 32
LATENCY_ITERATIONS: Final = 100
LATENCY_DELTA: Final = 5
