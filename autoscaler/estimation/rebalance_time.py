"""t_r as a distribution: how long partitions pause in a round, by kind of round, members and partitions moved.

The model, for each kind on its own: seconds = e^a · members^b · moved^c · noise. Why this one:
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

from autoscaler.estimation.power_law import FITTED, PowerLaw, fit, log_counts

KINDS: Final = ("plan", "death", "membership")
"""Kinds of rounds: a new plan; a plan that evicts a dead member; a member came, left or was lost without a plan."""
RESOLUTION_S: Final = 0.001
"""Shorter lengths count as this one: clocks of two processes were compared, less is noise and nothing to save."""
LEAST_ROUNDS: Final = 10
"""Below this, three fitted parameters leave too little to tell the noise by."""


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
        _check_round(self.kind, self.members, self.moved)
        for name, value in (("pause_s", self.pause_s), ("plan_to_ready_s", self.plan_to_ready_s)):
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} of a round must be seconds of at least 0, got {value}")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantile of the pause."""

    value_s: float
    """The next round of this kind stays at or below it with probability q."""
    samples: int
    """Rounds that it was learned from; 0: it is the prior."""


class RebalanceTimes:
    """Learns how long rounds pause; the module says how.

    prior_s: returned for a kind, with 0 samples, until `enough_rounds` of that kind have been seen.
    memory_rounds: rounds of each kind that are remembered. Takes O(1) to observe, O(memory) once for the first quantile
    after that, then O(1).
    """

    def __init__(self, prior_s: float, *, enough_rounds: int = 30, memory_rounds: int = 1000) -> None:
        if not 0 < prior_s < math.inf:
            raise ValueError(f"rebalance time to start from must be positive, got {prior_s} s")
        if not LEAST_ROUNDS <= enough_rounds <= memory_rounds:
            raise ValueError(
                f"enough_rounds must be from {LEAST_ROUNDS} to memory_rounds, got {enough_rounds} of {memory_rounds}"
            )
        self._prior_s = prior_s
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

    def quantile(self, q: float, kind: str, members: int, moved: int) -> Estimate:
        """Return the pause that a share q, 0 < q < 1, of such rounds does not exceed; never falls as moved grows."""
        if not 0 < q < 1:
            raise ValueError(f"quantile q must lie between 0 and 1, got {q}")
        _check_round(kind, members, moved)
        history = self._histories[kind]
        if history.seen < self._enough_rounds:
            return Estimate(self._prior_s, 0)
        return _estimate(history.law(), q, members, moved)

    def warning(
        self, latency_target_s: float, *, q: float = 0.99, kind: str = "plan", members: int, moved: int
    ) -> str | None:
        """Return one sentence when the q-quantile of the pause reaches the latency target W, else None."""
        if not 0 < latency_target_s < math.inf:
            raise ValueError(f"latency_target_s must be positive seconds, got {latency_target_s}")
        estimate = self.quantile(q, kind, members, moved)
        if estimate.value_s < latency_target_s:
            return None
        seen = self._histories[kind].seen
        source = f"learned from {estimate.samples} rounds" if estimate.samples else f"assumed, {seen} rounds seen"
        return (
            f"{100 * q:g} % of {kind} rounds with {members} members and {moved} moved pause up to "
            f"{estimate.value_s:.3g} s ({source}), which reaches the latency target of {latency_target_s:g} s: "
            "an event of a partition that moves can be late with none before it"
        )


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


def _check_round(kind: str, members: int, moved: int) -> None:
    if kind not in KINDS:
        raise ValueError(f"kind of a round must be one of {', '.join(KINDS)}, got {kind!r}")
    for name, value, least in (("members", members, 1), ("moved", moved, 0)):
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{name} of a round must be a whole number of at least {least}, got {value!r}")
