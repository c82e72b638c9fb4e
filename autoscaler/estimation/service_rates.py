"""μ of each replica with its doubt: what all replicas show informs what is believed of one.

Three levels, all as logarithms of the seconds that one event takes, because machines differ by factors:
- the prior, what an operator says, right to a factor e^±PRIOR_SPREAD;
- the group's typical replica, and by how much replicas differ;
- each replica: its own mean where it has served much, the group's where it has served little.

The typical replica is that of a random-effects model (DerSimonian, Laird 1986): every replica's true value is the
typical one's plus a difference of its own with variance τ², and what was measured is that plus an error of known
variance. Both the typical value and τ² have a prior, so that one replica, or none, is answered for too.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CONFIDENCE: Final = 0.95
"""With which the interval of an estimate holds the truth."""
Z: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
EXPECTED_VARIATION: Final = 1.0
"""(Standard deviation / mean)² of one event's service time before any was seen: that of exponential times."""
EXPECTED_BATCHES: Final = 4.0
"""For how many readings that counts."""
PRIOR_SPREAD: Final = 0.5
"""Standard error of the logarithm of what an operator says."""
REPLICA_SPREAD: Final = 0.1
"""τ as believed before replicas were seen."""
MEMORY_EVENTS: Final = 2000
"""An event counts half after its replica has served so many more."""
LEAST_DOUBT: Final = 1e-12
"""Variance of a mean that seems certain."""
ALIKE: Final = 0.05
"""Replicas whose μ differ by less are alike: a plan gains nothing by telling them apart, and hiccups of a machine that
serves them all look like that."""
EXPECTED_REPLICAS: Final = 2.0
"""For how many replicas the expected difference between replicas counts."""


@dataclass(frozen=True, slots=True)
class WorkCounters:
    """What a replica says of its work. Both counters grow over one incarnation and start again with the next."""

    replica: str
    incarnation: str
    processed: int
    """Events served."""
    busy_us: int
    """Time spent serving them, waiting for input left out."""


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """μ, events/s, and the interval that holds it with 95 %."""

    value: float
    low: float
    high: float
    samples: int
    """Events of this very replica that it was learned from; 0: only from others."""


@dataclass(slots=True)
class _Work:
    """What one replica has done; older events count less."""

    last: WorkCounters
    seen: int = 0
    events: float = 0.0
    busy_s: float = 0.0
    squares: float = 0.0
    """Σ weight² over events: how much the forgetting costs in certainty."""

    def add(self, events: int, busy_s: float, remembered: float) -> None:
        self.seen += events
        self.events = self.events * remembered + events
        self.busy_s = self.busy_s * remembered + busy_s
        self.squares = self.squares * remembered**2 + events


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


class ServiceRates:
    """Learns μ of each replica and of the typical one.

    prior: events/s believed before anything is seen. speed_of: how many times as fast a replica is said to be as the
    typical one; what is learned of it is by how much that is wrong. alike: no replica is told apart. O(1) to observe;
    O(replicas) once for the first estimate after that, then O(1).
    """

    def __init__(self, prior: float, speed_of: Callable[[str], float] = lambda _: 1.0, *, alike: bool = False) -> None:
        self._speed_of = speed_of
        self._alike = alike
        self._prior_log_s = -math.log(prior)
        self._work: dict[str, _Work] = {}
        self._variation = EXPECTED_VARIATION * EXPECTED_BATCHES
        self._batches = EXPECTED_BATCHES
        self._typical: TypicalReplica | None = None

    def observe(self, now: WorkCounters) -> None:
        """Take in one reading. An incarnation's first says where its counters stand; one out of order is ignored."""
        work = self._work.get(now.replica)
        if work is None:
            self._work[now.replica] = _Work(now)
            return
        if work.last.incarnation != now.incarnation:
            work.last = now
            return
        events, busy_s = now.processed - work.last.processed, (now.busy_us - work.last.busy_us) / 1e6
        busy_s *= self._speed_of(now.replica)
        if events <= 0 or busy_s <= 0:
            return
        work.last = now
        remembered = 0.5 ** (events / MEMORY_EVENTS)
        if work.events:
            self._learn_variation(work, events, busy_s, remembered)
        work.add(events, busy_s, remembered)
        self._typical = None

    def keep(self, replicas: Collection[str]) -> None:
        """Forget all replicas but these."""
        self._work = {name: work for name, work in self._work.items() if name in replicas}
        self._typical = None

    def estimate(self, replica: str) -> RateEstimate:
        """Return μ of one replica; of one that was never seen, what the others suggest."""
        typical, work, faster = self._fitted(), self._work.get(replica), math.log(self._speed_of(replica))
        if work is None or not work.events:
            return self._rate(typical.value - faster, typical.doubt + typical.spread, 0)
        own, doubt = math.log(work.busy_s / work.events), self._event_variance * work.squares / work.events**2
        value, variance = typical.estimate(own, doubt)
        return self._rate(value - faster, variance, work.seen)

    def own(self, replica: str) -> float | None:
        """Return μ of a replica that is known, or said, to differ from the typical one; None of any other.

        Known: the whole interval of its estimate lies outside those that are alike.
        """
        if self._alike:
            return None
        one, speed = self.estimate(replica), self._speed_of(replica)
        said = self.service_rate * speed
        differs = one.high < said * (1 - ALIKE) or one.low > said * (1 + ALIKE)
        if one.samples and differs:
            return one.value
        return said if speed != 1 else None

    @property
    def service_rate(self) -> float:
        """μ of the typical replica, events/s."""
        return math.exp(-self._fitted().value)

    def _learn_variation(self, work: _Work, events: int, busy_s: float, remembered: float) -> None:
        """Compare a reading with what its replica's earlier ones predict: how far is the mean of so many events off?"""
        off = busy_s / events * work.events / work.busy_s - 1
        expected = 1 / events + work.squares / work.events**2  # of the reading's mean and of what it is compared with
        self._variation = self._variation * remembered + off * off / expected
        self._batches = self._batches * remembered + 1

    @property
    def _event_variance(self) -> float:
        """Variance of the logarithm of one event's seconds, as far as a mean of many is concerned.

        The variation is an estimate, too: raised so that Z standard deviations are what Student's t asks for
        (t ≈ z + (z³ + z)/(4ν); Abramowitz, Stegun 26.7.5).
        """
        return self._variation / self._batches * (1 + (Z**2 + 1) / (4 * self._batches)) ** 2

    def _fitted(self) -> TypicalReplica:
        """Return the typical replica, in log seconds of busy time per event."""
        if self._typical is None:
            known = [work for work in self._work.values() if work.events]
            events, busy_s, squares = (
                np.array([getattr(work, name) for work in known]) for name in ("events", "busy_s", "squares")
            )
            self._typical = typical_replica(
                np.log(busy_s / events),
                np.maximum(self._event_variance * squares / events**2, LEAST_DOUBT),
                self._prior_log_s,
            )
        return self._typical

    def _rate(self, log_s: float, variance: float, samples: int) -> RateEstimate:
        error = Z * math.sqrt(variance)
        return RateEstimate(math.exp(-log_s), math.exp(-log_s - error), math.exp(-log_s + error), samples)


def typical_replica(own: Floats, doubt: Floats, prior: float) -> TypicalReplica:
    """Return the typical replica of those measured as `own` with variances `doubt` (> 0); there may be none.

    prior: the typical value as believed.
    """
    spread = _spread(own, doubt)
    weights = 1 / (doubt + spread)
    certainty = 1 / PRIOR_SPREAD**2 + float(weights.sum())
    value = (prior / PRIOR_SPREAD**2 + float(weights @ own)) / certainty
    return TypicalReplica(value, 1 / certainty, spread, 2 / (len(own) + EXPECTED_REPLICAS))


def _spread(own: Floats, doubt: Floats) -> float:
    """Return τ²: what is expected and what is seen, each by how well it is known.

    A variance v of m values is known with variance 2·v²/m. Where replicas are hardly known themselves, nothing is seen
    of τ, and what was expected stands.
    """
    expected = REPLICA_SPREAD**2
    if len(own) < 2:
        return expected
    weights = 1 / doubt
    mean = weights @ own / weights.sum()
    excess = weights @ (own - mean) ** 2 - (len(own) - 1)
    seen = excess / (weights.sum() - weights @ weights / weights.sum())
    known, believed = (len(own) - 1) / (expected + doubt.mean()) ** 2, EXPECTED_REPLICAS / expected**2
    return float(max(expected / 10, (believed * expected + known * seen) / (believed + known)))
