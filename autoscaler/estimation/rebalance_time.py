"""t_r as a distribution: how long partitions pause in a round, by kind of round, members and partitions moved.

The model, for each kind on its own: seconds = e^a · members^b · moved^c · noise. It is fitted by least squares in
logarithms; b and c are drawn towards what they are believed to be before anything is seen (ridge), so that they are
defined even when all samples have the same counts, and then extrapolate as believed. Why this one:
- Most pairs (members, moved) are never seen before they are asked for. A power law takes two exponents to carry what
  was learned at one pair over to all others, and neither can be negative: moving more never looks cheaper.
- Nothing is assumed of the noise. Its quantile is an order statistic of what the law left unexplained, so that heavy
  tails and rare stalls are there with the frequency that they had. Only where samples are fewer than 1/(1 − q) is the
  tail taken as log-normal, and never below the longest seen.
- The noise is taken to be the same everywhere. Where it is not, the quantile holds over the mix of rounds that occur,
  not at each pair (docs/rebalance-time.md has figures).
- The newest `memory_rounds` count equally and older ones not at all, because ranks of weighted samples would lose their
  distribution-free meaning. Slower rounds raise the quantile once they are a share 1 − q of the memory (10 of 1000 for
  q = 0.99); quicker ones lower it when the slow ones have left the memory.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
KINDS: Final = ("plan", "death", "membership")
"""Kinds of rounds: a new plan; a plan that evicts a dead member; a member came, left or was lost without a plan."""
RESOLUTION_S: Final = 0.001
"""Shorter lengths count as this one: clocks of two processes were compared, less is noise and nothing to save."""
BELIEVED: Final = (0.25, 0.5)
"""b and c before anything is seen: twice the members 1.2 times as long, four times the partitions twice as long. On the
slow side of what prototypes showed (1 to 50 partitions: up to 7 times as long)."""
BELIEF_WEIGHT: Final = 4.0
"""Weighs like 4 samples whose counts are e times the average. With residuals that spread by a factor e^0.5, b and c are
believed to ±0.25."""
FITTED: Final = 3
"""Parameters taken from the samples: a, b, c."""


@dataclass(frozen=True, slots=True)
class RebalanceTiming:
    """One round of the group, as measured. Of several takers' reports on one round, the longest lengths.

    Raises ValueError that names the value if it is not a known kind, a count or a length of time.
    """

    kind: str
    """One of KINDS."""
    members: int
    moved: int
    """Partitions of the group that changed owner."""
    pause_s: float
    """Longest time that one of them was served by nobody; 0: not measured."""
    plan_to_ready_s: float
    """From the plan's record until the round was complete; 0: not measured, or no plan."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind of a round must be one of {', '.join(KINDS)}, got {self.kind!r}")
        for name, value, least in (("members", self.members, 1), ("moved", self.moved, 0)):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} of a round must be a whole number of at least {least}, got {value!r}")
        for name, length_s in (("pause_s", self.pause_s), ("plan_to_ready_s", self.plan_to_ready_s)):
            if not 0 <= length_s < math.inf:
                raise ValueError(f"{name} of a round must be seconds of at least 0, got {length_s}")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantile of the pause."""

    value_s: float
    """The next round of this kind stays at or below it with probability q."""
    samples: int
    """Rounds that it was learned from."""


class RebalanceTimes:
    """Learns how long rounds pause; the module says how.

    enough_rounds: of a kind, 10 or more; before them nothing is said of it. memory_rounds: rounds of each kind that are
    remembered. Takes O(1) to observe, O(memory) once for the first quantile after that, then O(1).
    """

    def __init__(self, *, enough_rounds: int = 30, memory_rounds: int = 1000) -> None:
        self._enough_rounds = enough_rounds
        self._histories = {kind: _History(memory_rounds) for kind in KINDS}

    def observe(self, timing: RebalanceTiming) -> None:
        """Take in one round. A pause that was not measured teaches nothing."""
        if timing.pause_s:
            self._histories[timing.kind].add(timing.members, timing.moved, timing.pause_s)

    def remembered(self) -> tuple[RebalanceTiming, ...]:
        """Return what was learned, the oldest of a kind first; a learner that observes it knows as much as this one."""
        return tuple(
            RebalanceTiming(kind=kind, members=members, moved=moved, pause_s=pause_s, plan_to_ready_s=0.0)
            for kind, history in self._histories.items()
            for members, moved, pause_s in history.oldest_first()
        )

    def quantile(self, q: float, kind: str, members: int, moved: int) -> Estimate | None:
        """Return the pause that a share q, 0 < q < 1, of such rounds does not exceed; never falls as moved grows.

        None: too few rounds of the kind were seen.
        """
        history = self._histories[kind]
        return _estimate(history.law(), q, members, moved) if history.seen >= self._enough_rounds else None


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


class _History:
    """The newest pauses of one kind of round, and the law fitted to them, made when it is asked for."""

    def __init__(self, memory_rounds: int) -> None:
        self.seen = 0
        self._samples = np.empty((memory_rounds, 3))
        self._law: PowerLaw | None = None

    def add(self, members: int, moved: int, seconds: float) -> None:
        oldest = self.seen % len(self._samples)
        self._samples[oldest] = *log_counts(members, moved), math.log(max(seconds, RESOLUTION_S))
        self.seen += 1
        self._law = None

    def oldest_first(self) -> Iterator[tuple[int, int, float]]:
        """Yield members, moved (0 is remembered as 1, which the law takes it for) and seconds."""
        memory = len(self._samples)
        for number in range(max(0, self.seen - memory), self.seen):
            log_members, log_moved, log_s = self._samples[number % memory].tolist()
            yield round(math.exp(log_members)), round(math.exp(log_moved)), math.exp(log_s)

    def law(self) -> PowerLaw:
        if self._law is None:
            self._law = fit(self._samples[: self.seen])
        return self._law


def _estimate(law: PowerLaw, q: float, members: int, moved: int) -> Estimate:
    samples = len(law.residuals)
    at = law.log_s(members, moved)
    rank = next_at_or_below(q, samples)
    noise = float(law.residuals[rank - 1]) if rank <= samples else _beyond_the_longest(law, q)
    return Estimate(_seconds(at + noise), samples)


def next_at_or_below(q: float, samples: int) -> int:
    """Return rank k, from 1, so that the next sample is at or below the k-th smallest with probability at least q.

    k = ⌈(n + 1)·q⌉: each place of the next sample among the n seen is equally likely (Vovk, Gammerman, Shafer 2005,
    conformal prediction). k = n + 1 means that n samples are too few: the next may exceed all of them.
    """
    # 1e-9: (99 + 1)·0.99 is 99.00000000000001 in floating point, and its rank is 99
    return max(1, math.ceil((samples + 1) * q - 1e-9))


def _beyond_the_longest(law: PowerLaw, q: float) -> float:
    """Quantile of noise that few samples cannot show: Student's t for log-normal noise, at least the longest seen.

    t ≈ z + (z³ + z)/(4ν), ν degrees of freedom (Abramowitz, Stegun 26.7.5); √(1 + 1/n) for the uncertain mean.
    """
    samples = len(law.residuals)
    z = NormalDist().inv_cdf(q)
    t = z + (z**3 + z) / (4 * (samples - FITTED))
    return max(float(law.residuals[-1]), t * law.spread * math.sqrt(1 + 1 / samples))


def _seconds(log_s: float) -> float:
    """Return e^log_s; 1e-12 more, so that a length equal to the quantile is not above it by rounding."""
    return math.exp(log_s) * (1 + 1e-12) if log_s < 700 else math.inf  # e^710 is beyond floating point
