"""Of many replicas, each known with some doubt: what is the typical one like, and by how much do they differ?

The random-effects model (DerSimonian, Laird 1986): every replica's true value is the typical one's plus a difference of
its own with variance τ², and what was measured is that plus an error of known variance. Both the typical value and τ²
have a prior, so that one replica, or none, is answered for too.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXPECTED_REPLICAS: Final = 2.0
"""For how many replicas the expected difference between replicas counts."""


@dataclass(frozen=True, slots=True)
class TypicalReplica:
    """In logarithms, since machines differ by factors."""

    value: float
    doubt: float
    """Variance of `value`."""
    spread: float
    """τ²: variance between replicas."""
    spread_doubt: float
    """(Standard error / value)² of τ²."""

    def estimate(self, own: float, doubt: float) -> tuple[float, float]:
        """Return the best guess for a replica that was measured as `own`, variance `doubt`, and its variance.

        Empirical Bayes: the less its own measurement is worth beside τ², the closer to the typical value; with what
        that may be wrong by because τ² is an estimate itself (Morris 1983).
        """
        shrunk = doubt / (doubt + self.spread)
        off = own - self.value
        variance = (1 - shrunk) * doubt + shrunk**2 * (self.doubt + off * off * self.spread_doubt)
        return self.value + (1 - shrunk) * off, variance


def fit(own: Floats, doubt: Floats, *, prior: float, prior_spread: float, replica_spread: float) -> TypicalReplica:
    """Return the typical replica of those measured as `own` with variances `doubt` (> 0); there may be none.

    prior, prior_spread: the typical value as believed, and its standard error. replica_spread: τ as believed.
    """
    spread = _spread(own, doubt, replica_spread**2)
    weights = 1 / (doubt + spread)
    certainty = 1 / prior_spread**2 + float(weights.sum())
    value = (prior / prior_spread**2 + float(weights @ own)) / certainty
    return TypicalReplica(value, 1 / certainty, spread, 2 / (len(own) + EXPECTED_REPLICAS))


def _spread(own: Floats, doubt: Floats, expected: float) -> float:
    """Return τ²: what is expected and what is seen, each by how well it is known.

    A variance v of m values is known with variance 2·v²/m. Where replicas are hardly known themselves, nothing is seen
    of τ, and what was expected stands.
    """
    if len(own) < 2:
        return expected
    weights = 1 / doubt
    mean = weights @ own / weights.sum()
    excess = weights @ (own - mean) ** 2 - (len(own) - 1)
    seen = excess / (weights.sum() - weights @ weights / weights.sum())
    known, believed = (len(own) - 1) / (expected + doubt.mean()) ** 2, EXPECTED_REPLICAS / expected**2
    return float(max(expected / 10, (believed * expected + known * seen) / (believed + known)))
