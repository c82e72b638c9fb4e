"""Estimates the service rate (μ) of each replica, with a confidence interval, from the reports of all replicas.

The model uses the logarithm of the seconds per event, because the speeds of machines differ by factors. The prior is
the configured rate. The standard error of its logarithm is PRIOR_SPREAD. The typical value comes from a random-effects
model (DerSimonian, Laird 1986), in which the replicas scatter around this value with variance τ². After many events,
the estimate of a replica is close to its own measurement. After few events, it is close to the typical value (empirical
Bayes, Morris 1983).
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Z: Final = NormalDist().inv_cdf(0.975)
"""Half-width of a 95 % confidence interval, standard deviations."""
PRIOR_VARIATION, PRIOR_BATCHES = 1.0, 4.0
"""Prior of (standard deviation / mean)² of one event's service time, and its weight in reports."""
PRIOR_SPREAD: Final = 0.5
"""Standard error of the logarithm of the configured rate."""
PRIOR_REPLICA_SPREAD, PRIOR_REPLICAS = 0.1, 2.0
"""Prior of τ, and its weight in replicas."""
MEMORY_EVENTS: Final = 2000
"""Half-life of an event's weight, in later events of its replica."""
MIN_VARIANCE: Final = 1e-12
"""Lower bound of the variance of a replica's mean."""
SAME_RATE_SHARE: Final = 0.05
"""Relative difference of μ below which replicas count as equal, because a plan gains nothing by distinguishing them."""


class WorkCounters(NamedTuple):
    """Work that a replica reports. Both counters grow during one incarnation and restart with the next."""

    replica: str
    incarnation: str
    processed: int
    busy_us: int
    """Time spent serving these events, µs, without waiting for input."""


class RateEstimate(NamedTuple):
    """Service rate (μ), events/s, with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    samples: int
    """Events of this replica from which μ was learned; 0: μ comes only from other replicas."""


class _Typical(NamedTuple):
    value: float
    variance: float
    spread: float
    """τ²."""
    spread_error: float
    """(Standard error / value)² of τ²."""


@dataclass(slots=True)
class _Work:
    """Work of one replica, as weighted sums over its events. Older events count less."""

    last: WorkCounters
    samples: int = 0
    events: float = 0.0
    busy_s: float = 0.0
    squares: float = 0.0
    """Sum of the squared weights. Variances are computed from it."""


class ServiceRates:
    """Learns μ of each replica and of the typical one. prior: configured μ, events/s."""

    def __init__(self, prior: float) -> None:
        self._prior_log_s = -math.log(prior)
        self._work: dict[str, _Work] = {}
        self._variation, self._batches = PRIOR_VARIATION * PRIOR_BATCHES, PRIOR_BATCHES
        self._typical: _Typical | None = None

    def observe(self, now: WorkCounters) -> None:
        """Add one report. The first of an incarnation only sets where its counters start. Old reports are ignored."""
        work = self._work.setdefault(now.replica, _Work(now))
        if work.last.incarnation != now.incarnation:
            work.last = now
        events, busy_s = now.processed - work.last.processed, (now.busy_us - work.last.busy_us) / 1e6
        if events <= 0 or busy_s <= 0:
            return
        remembered = 0.5 ** (events / MEMORY_EVENTS)
        if work.events:  # compare the mean of these events with the mean of the earlier ones
            error = busy_s / events * work.events / work.busy_s - 1
            self._variation = self._variation * remembered + error**2 / (1 / events + work.squares / work.events**2)
            self._batches = self._batches * remembered + 1
        work.last, work.samples = now, work.samples + events
        work.events, work.busy_s = work.events * remembered + events, work.busy_s * remembered + busy_s
        work.squares = work.squares * remembered**2 + events
        self._typical = None

    def keep(self, replicas: Collection[str]) -> None:
        """Forget the replicas that are not in `replicas`."""
        self._work, self._typical = {name: work for name, work in self._work.items() if name in replicas}, None

    def estimate(self, replica: str) -> RateEstimate:
        """Return μ of one replica. For an unknown replica, return the typical μ with a wider interval."""
        typical, work = self._fitted(), self._work.get(replica)
        log_s, variance = typical.value, typical.variance + typical.spread
        if work is not None and work.events:
            own = math.log(work.busy_s / work.events)
            own_variance = self._event_variance * work.squares / work.events**2
            shrinkage, offset = own_variance / (own_variance + typical.spread), own - typical.value
            error = typical.variance + offset * offset * typical.spread_error
            variance = (1 - shrinkage) * own_variance + shrinkage**2 * error
            log_s = typical.value + (1 - shrinkage) * offset
        half_width = Z * math.sqrt(variance)
        samples = work.samples if work else 0
        return RateEstimate(math.exp(-log_s), math.exp(-log_s - half_width), math.exp(-log_s + half_width), samples)

    def own_rate(self, replica: str) -> float | None:
        """Return μ of a replica that differs from the typical replica; None if it does not.

        It differs if its whole confidence interval is outside (1 ± `SAME_RATE_SHARE`) × the typical μ.
        """
        rate, typical = self.estimate(replica), self.service_rate
        differs = rate.high < typical * (1 - SAME_RATE_SHARE) or rate.low > typical * (1 + SAME_RATE_SHARE)
        return rate.value if rate.samples and differs else None

    @property
    def service_rate(self) -> float:
        """μ of the typical replica, events/s."""
        return math.exp(-self._fitted().value)

    @property
    def _event_variance(self) -> float:
        """Variance of the logarithm of one event's seconds, increased for few reports as Student's t requires."""
        return self._variation / self._batches * (1 + (Z**2 + 1) / (4 * self._batches)) ** 2

    def _fitted(self) -> _Typical:
        if self._typical is None:
            known = [work for work in self._work.values() if work.events]
            events, busy_s, squares = (
                np.array([getattr(work, name) for work in known]) for name in ("events", "busy_s", "squares")
            )
            own = np.log(busy_s / events)
            variances = np.maximum(self._event_variance * squares / events**2, MIN_VARIANCE)
            spread = _spread(own, variances)
            weights = 1 / (variances + spread)
            precision = 1 / PRIOR_SPREAD**2 + float(weights.sum())
            value = (self._prior_log_s / PRIOR_SPREAD**2 + float(weights @ own)) / precision
            self._typical = _Typical(value, 1 / precision, spread, 2 / (len(own) + PRIOR_REPLICAS))
        return self._typical


def _spread(own: NDArray[np.float64], variances: NDArray[np.float64]) -> float:
    """Return τ²: prior and measurement, each weighted by its precision (variance of m values: 2·v²/m)."""
    prior = PRIOR_REPLICA_SPREAD**2
    if len(own) < 2:
        return prior
    weights = 1 / variances
    mean = weights @ own / weights.sum()
    excess = weights @ (own - mean) ** 2 - (len(own) - 1)
    measured = excess / (weights.sum() - weights @ weights / weights.sum())
    precision, prior_precision = (len(own) - 1) / (prior + variances.mean()) ** 2, PRIOR_REPLICAS / prior**2
    return float(max(prior / 10, (prior_precision * prior + precision * measured) / (prior_precision + precision)))
