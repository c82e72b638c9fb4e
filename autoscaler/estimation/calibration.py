"""Does the learner keep its word? Each round is predicted from those before it, then compared, then learned."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from autoscaler.estimation.rebalance_time import Length, RebalanceTimes, RebalanceTiming


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many predicted rounds stayed at or below their predicted quantile."""

    covered: int
    predicted: int

    @property
    def share(self) -> float:
        """Fraction covered, to be compared with q; nan when nothing was predicted."""
        return self.covered / self.predicted if self.predicted else math.nan

    def error(self, q: float) -> float:
        """Standard error of `share` if the predictions are right and rounds are independent."""
        return math.sqrt(q * (1 - q) / self.predicted) if self.predicted else math.inf


def coverage(
    timings: Iterable[RebalanceTiming],
    q: float,
    *,
    length: Length = Length.PAUSE,
    enough_rounds: int = 30,
    memory_rounds: int = 1000,
) -> Coverage:
    """Go through `timings` in the order in which they happened; only what was learned, not the prior, is judged."""
    learner = RebalanceTimes(1.0, enough_rounds=enough_rounds, memory_rounds=memory_rounds)
    covered = predicted = 0
    for timing in timings:
        if seconds := timing.length_s(length):
            estimate = learner.quantile(q, timing.kind, timing.members, timing.moved, length=length)
            predicted += estimate.samples > 0
            covered += estimate.samples > 0 and seconds <= estimate.value_s
        learner.observe(timing)
    return Coverage(covered, predicted)
