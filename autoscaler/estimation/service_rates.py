"""μ of each replica with its doubt: what all replicas show informs what is believed of one.

Logarithms of the seconds that one event takes, because machines differ by factors. What an operator says is right to a
factor e^±PRIOR_SPREAD. The typical replica is that of a random-effects model (DerSimonian, Laird 1986): each replica's
value is the typical one's plus a difference with variance τ², measured with an error of known variance. Who has served
much is believed to be as it was measured, who has served little to be like the others (empirical Bayes, Morris 1983).
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Z: Final = NormalDist().inv_cdf(0.975)
"""Standard deviations of an interval that holds the truth with 95 %."""
VARIATION, BATCHES = 1.0, 4.0
"""(Standard deviation / mean)² of one event's service time before any was seen, and for how many readings it counts."""
PRIOR_SPREAD: Final = 0.5
"""Standard error of the logarithm of what an operator says."""
REPLICA_SPREAD, REPLICAS = 0.1, 2.0
"""τ as believed before replicas were seen, and for how many replicas that counts."""
MEMORY_EVENTS: Final = 2000
"""An event counts half after its replica has served so many more."""
MIN_VARIANCE: Final = 1e-12
"""Variance of a mean that seems certain."""
SAME_RATE_SHARE: Final = 0.05
"""Replicas whose μ differ by less are alike: a plan gains nothing by telling them apart."""


class WorkCounters(NamedTuple):
    """What a replica says of its work. Both counters grow over one incarnation and start again with the next."""

    replica: str
    incarnation: str
    processed: int
    busy_us: int
    """Time spent serving them, waiting for input left out."""


class RateEstimate(NamedTuple):
    """μ, events/s, and the interval that holds it with 95 %."""

    value: float
    low: float
    high: float
    samples: int
    """Events of this very replica that it was learned from; 0: only from others."""


class _Typical(NamedTuple):
    value: float
    doubt: float
    spread: float
    """τ²."""
    spread_doubt: float
    """(Standard error / value)² of τ²."""


@dataclass(slots=True)
class _Work:
    """What one replica has done; older events count less."""

    last: WorkCounters
    seen: int = 0
    events: float = 0.0
    busy_s: float = 0.0
    squares: float = 0.0
    """Σ weight² over events: how much the forgetting costs in certainty."""


class ServiceRates:
    """Learns μ of each replica and of the typical one. prior: events/s believed before anything is seen."""

    def __init__(self, prior: float) -> None:
        self._prior_log_s = -math.log(prior)
        self._work: dict[str, _Work] = {}
        self._variation, self._batches = VARIATION * BATCHES, BATCHES
        self._typical: _Typical | None = None

    def observe(self, now: WorkCounters) -> None:
        """Take in one reading. An incarnation's first says where its counters stand; one out of order is ignored."""
        work = self._work.setdefault(now.replica, _Work(now))
        if work.last.incarnation != now.incarnation:
            work.last = now
        events, busy_s = now.processed - work.last.processed, (now.busy_us - work.last.busy_us) / 1e6
        if events <= 0 or busy_s <= 0:
            return
        remembered = 0.5 ** (events / MEMORY_EVENTS)
        if work.events:  # how far is the mean of so many events off what the earlier ones predict?
            off = busy_s / events * work.events / work.busy_s - 1
            self._variation = self._variation * remembered + off * off / (1 / events + work.squares / work.events**2)
            self._batches = self._batches * remembered + 1
        work.last, work.seen = now, work.seen + events
        work.events, work.busy_s = work.events * remembered + events, work.busy_s * remembered + busy_s
        work.squares = work.squares * remembered**2 + events
        self._typical = None

    def keep(self, replicas: Collection[str]) -> None:
        """Forget all replicas but these."""
        self._work, self._typical = {name: work for name, work in self._work.items() if name in replicas}, None

    def estimate(self, replica: str) -> RateEstimate:
        """Return μ of one replica; of one that was never seen, what the others suggest."""
        typical, work = self._fitted(), self._work.get(replica)
        log_s, variance = typical.value, typical.doubt + typical.spread
        if work is not None and work.events:
            own, doubt = math.log(work.busy_s / work.events), self._event_variance * work.squares / work.events**2
            shrunk, off = doubt / (doubt + typical.spread), own - typical.value
            variance = (1 - shrunk) * doubt + shrunk**2 * (typical.doubt + off * off * typical.spread_doubt)
            log_s = typical.value + (1 - shrunk) * off
        error = Z * math.sqrt(variance)
        seen = work.seen if work else 0
        return RateEstimate(math.exp(-log_s), math.exp(-log_s - error), math.exp(-log_s + error), seen)

    def own_rate(self, replica: str) -> float | None:
        """Return μ of a replica that is known to differ from the typical one; None of any other.

        Known: the whole interval of its estimate lies outside those that are alike.
        """
        one, typical = self.estimate(replica), self.service_rate
        differs = one.high < typical * (1 - SAME_RATE_SHARE) or one.low > typical * (1 + SAME_RATE_SHARE)
        return one.value if one.samples and differs else None

    @property
    def service_rate(self) -> float:
        """μ of the typical replica, events/s."""
        return math.exp(-self._fitted().value)

    @property
    def _event_variance(self) -> float:
        """Variance of the logarithm of one event's seconds, raised to what Student's t asks of so few readings."""
        return self._variation / self._batches * (1 + (Z**2 + 1) / (4 * self._batches)) ** 2

    def _fitted(self) -> _Typical:
        if self._typical is None:
            known = [work for work in self._work.values() if work.events]
            events, busy_s, squares = (
                np.array([getattr(work, name) for work in known]) for name in ("events", "busy_s", "squares")
            )
            own, doubt = np.log(busy_s / events), np.maximum(self._event_variance * squares / events**2, MIN_VARIANCE)
            spread = _spread(own, doubt)
            weights = 1 / (doubt + spread)
            certainty = 1 / PRIOR_SPREAD**2 + float(weights.sum())
            value = (self._prior_log_s / PRIOR_SPREAD**2 + float(weights @ own)) / certainty
            self._typical = _Typical(value, 1 / certainty, spread, 2 / (len(own) + REPLICAS))
        return self._typical


def _spread(own: NDArray[np.float64], doubt: NDArray[np.float64]) -> float:
    """Return τ²: what is expected and what is seen, each by how well it is known (of m values to 2·v²/m)."""
    expected = REPLICA_SPREAD**2
    if len(own) < 2:
        return expected
    weights = 1 / doubt
    mean = weights @ own / weights.sum()
    excess = weights @ (own - mean) ** 2 - (len(own) - 1)
    seen = excess / (weights.sum() - weights @ weights / weights.sum())
    known, believed = (len(own) - 1) / (expected + doubt.mean()) ** 2, REPLICAS / expected**2
    return float(max(expected / 10, (believed * expected + known * seen) / (believed + known)))
