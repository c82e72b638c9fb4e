"""A length of time as a power law of two counts: seconds = e^a · members^b · moved^c, with b and c never negative.

Fitted by least squares in logarithms. b and c are drawn towards what they are believed to be before anything is seen
(ridge), so that they are defined even when all samples have the same counts, and then extrapolate as believed.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BELIEVED: Final = (0.25, 0.5)
"""b and c before anything is seen: twice the members 1.2 times as long, four times the partitions twice as long. On the
slow side of what prototypes showed (1 to 50 partitions: up to 7 times as long)."""
BELIEF_WEIGHT: Final = 4.0
"""Weighs like 4 samples whose counts are e times the average. With residuals that spread by a factor e^0.5, b and c are
believed to ±0.25."""
FITTED: Final = 3
"""Parameters taken from the samples: a, b, c."""


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """The fit, with what it does not explain."""

    centre: tuple[float, float]
    """Mean of ln members and ln moved over the samples."""
    log_centre_s: float
    """Mean of ln seconds over the samples."""
    exponents: tuple[float, float]
    """b and c."""
    residuals: Floats
    """ln seconds minus the law's, ascending, one for each sample."""
    spread: float
    """Standard deviation of the residuals."""

    def log_s(self, members: int, moved: int) -> float:
        """Return ln of the law's seconds at these counts."""
        x, y = log_counts(members, moved)
        x, y = x - self.centre[0], y - self.centre[1]
        return self.log_centre_s + self.exponents[0] * x + self.exponents[1] * y


def log_counts(members: int, moved: int) -> tuple[float, float]:
    """Return ln members and ln moved; a round that moved nothing counts as if it had moved one partition."""
    return math.log(members), math.log(max(1, moved))


def fit(samples: Floats) -> PowerLaw:
    """Fit rows of (ln members, ln moved, ln seconds), shape n × 3, n ≥ 4."""
    mean = samples.mean(axis=0)
    apart = samples - mean
    products = apart.T @ apart
    bb, bc, cc = (float(products[i, j]) for i, j in ((0, 0), (0, 1), (1, 1)))
    bb, cc = bb + BELIEF_WEIGHT, cc + BELIEF_WEIGHT
    by = float(products[0, 2]) + BELIEF_WEIGHT * BELIEVED[0]
    cy = float(products[1, 2]) + BELIEF_WEIGHT * BELIEVED[1]
    exponents = _never_negative(bb, bc, cc, by, cy)
    residuals = apart[:, 2] - apart[:, :2] @ np.array(exponents)
    residuals.sort()
    return PowerLaw(
        centre=(float(mean[0]), float(mean[1])),
        log_centre_s=float(mean[2]),
        exponents=exponents,
        residuals=residuals,
        spread=math.sqrt(float(residuals @ residuals) / (len(residuals) - FITTED)),
    )


def _never_negative(bb: float, bc: float, cc: float, by: float, cy: float) -> tuple[float, float]:
    """Minimise bb·b² + 2·bc·b·c + cc·c² − 2·by·b − 2·cy·c over b, c ≥ 0: inside, or on the better of the two edges."""
    determinant = bb * cc - bc * bc
    b, c = (by * cc - cy * bc) / determinant, (cy * bb - by * bc) / determinant
    if b >= 0 and c >= 0:
        return b, c
    edges = (max(0.0, by / bb), 0.0), (0.0, max(0.0, cy / cc))
    return min(edges, key=lambda edge: bb * edge[0] ** 2 + cc * edge[1] ** 2 - 2 * by * edge[0] - 2 * cy * edge[1])
