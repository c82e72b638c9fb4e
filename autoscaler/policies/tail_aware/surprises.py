"""By how much more came than was expected: what may come again."""

from collections import deque
from typing import Final, NamedTuple

import numpy as np

from autoscaler.policies.tail_aware.arrivals import Shape
from autoscaler.policies.tail_aware.situation import Floats

LOOKED_BACK: Final = 120
FADING: Final = 0.98
"""Weight of one that is an interval older: the last 50 or so count."""
ALIKE_LOAD: Final = 1.5
"""Expected loads within this factor are alike; what came by surprise at others counts as a single interval, and less
the more is known of those alike."""
TAILS: Final = (0.02, 0.06, 0.15, 0.35, 0.7)
"""Where the distribution is cut, from the top; each piece is stood for by its mean."""
OUTLIER: Final = 2.0
"""The largest surprise counts no more than so many times the next."""
NOTHING: Final = 0.01
"""Share of what is expected, or one event, that is no surprise."""


class ForecastError(NamedTuple):
    """More than is expected."""

    chance: float
    factor: float
    """Times as many, above 1."""
    shape: Shape
    """As they lay when it was so."""


class ForecastErrors:
    """By how much more came than was said, as far as it was about as much that was said."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float, Floats]] = deque(maxlen=LOOKED_BACK)

    def note(self, said: float, slots: Floats) -> None:
        """Take in what was said of an interval, events of all partitions, and what came by slot and partition."""
        if self._seen and self._seen[-1][2].shape != slots.shape:
            self._seen.clear()
        self._seen.append((said, float(slots.sum()), slots))

    def ahead(self, expected: float) -> list[ForecastError]:
        """Return what may come where so many events are expected, the worst first (a conditional bootstrap)."""
        if not self._seen or expected <= 0:
            return []
        said, came = np.array([one[:2] for one in self._seen]).T
        alike = (said <= expected * ALIKE_LOAD + 1) & (said * ALIKE_LOAD + 1 >= expected)
        weights = FADING ** np.arange(len(said) - 1, -1, -1.0)
        others = max(1.0, float(weights[~alike].sum())) * (1 + float(weights[alike].sum()))
        weights = np.where(alike, weights, weights / others)
        weights = weights / max(1.0, weights.sum())
        more = np.maximum(0.0, came - said)
        for some in (alike, ~alike):
            more[some] = _without_outlier(more[some])
        order = np.argsort(-more, kind="stable")
        above = np.cumsum(weights[order])
        found = []
        least = 0.0
        for most in TAILS:
            inside = np.clip(np.minimum(above, most) - np.maximum(above - weights[order], least), 0.0, None)
            chance = float(inside.sum())
            mean = float((inside * more[order]).sum() / chance) if chance > 0 else 0.0
            if mean > max(1.0, NOTHING * expected):
                nearest = order[np.argmin(np.where(inside > 0, np.abs(more[order] - mean), np.inf))]
                found.append(ForecastError(chance, 1 + mean / expected, Shape.of(self._seen[nearest][2])))
            least = most
        return found


def _without_outlier(more: Floats) -> Floats:
    """Return the values, the largest no more than OUTLIER times the next: what came once may have been an accident."""
    if not len(more):
        return more
    largest = int(more.argmax())
    second = float(np.delete(more, largest).max(initial=0.0))
    kept = more.copy()
    kept[largest] = min(kept[largest], OUTLIER * second)
    return kept
