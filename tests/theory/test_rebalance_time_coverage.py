"""Calibration: of rounds not yet seen, a share q is at or below the learned quantile. Known truths, measured ones."""

import json
import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from autoscaler.estimation.rebalance_time import RebalanceTimes, RebalanceTiming

SEEDS = range(24)
SEEN = [(members, moved) for members in (2, 3, 4, 6) for moved in (1, 1, 1, 2, 3, 6)]
MEASURED = Path(__file__).parents[2] / "bench" / "reference" / "rebalance-timings.json"


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
    timings: Iterable[RebalanceTiming], q: float, *, enough_rounds: int = 30, memory_rounds: int = 1000
) -> Coverage:
    """Go through `timings` in the order in which they happened; only what was learned counts, not the prior."""
    learner = RebalanceTimes(enough_rounds=enough_rounds, memory_rounds=memory_rounds)
    covered = predicted = 0
    for timing in timings:
        if timing.pause_s:
            estimate = learner.quantile(q, timing.kind, timing.members, timing.moved)
            predicted += estimate is not None
            covered += estimate is not None and timing.pause_s <= estimate.value_s
        learner.observe(timing)
    return Coverage(covered, predicted)


def log_normal(chance, members, moved):
    return 0.01 * members**0.3 * moved**0.4 * chance.lognormvariate(0, 0.6)


def pareto(chance, members, moved):
    """Tail index 1.5: the variance is infinite."""
    return 0.01 * members**0.3 * moved**0.4 * chance.paretovariate(1.5)


def longest_of_moved(chance, members, moved):
    """Each handover has its own pause and, once in fifty, a stall: no power law, and the noise differs by pair."""
    return max(
        0.01 * chance.lognormvariate(0, 0.6) + (0.1 * chance.random() if chance.random() < 0.02 else 0.0)
        for _ in range(moved)
    )


def fixed_and_each(chance, members, moved):
    """A fixed cost, a cost for each partition, and a rare stall: no power law."""
    return 0.005 + 0.001 * moved + chance.expovariate(250) + (0.05 * chance.random() if chance.random() < 0.03 else 0.0)


def draw(truth, chance, pairs=SEEN):
    members, moved = chance.choice(pairs)
    return RebalanceTiming("plan", members, moved, truth(chance, members, moved), 0.0)


def learner(truth, seed, *, rounds, memory_rounds=1000):
    chance = random.Random(seed)
    times = RebalanceTimes(memory_rounds=memory_rounds)
    for _ in range(rounds):
        times.observe(draw(truth, chance))
    return times, chance


def covered(times, q, fresh):
    below = [timing.pause_s <= times.quantile(q, timing.kind, timing.members, timing.moved).value_s for timing in fresh]
    return sum(below) / len(below)


@pytest.mark.parametrize("truth", [log_normal, pareto, longest_of_moved, fixed_and_each])
def test_with_a_long_memory_each_learner_covers_fresh_rounds(truth):
    for seed in SEEDS[:8]:
        times, chance = learner(truth, seed, rounds=4000, memory_rounds=4000)

        share = covered(times, 0.99, [draw(truth, chance) for _ in range(4000)])

        assert 0.98 <= share <= 0.997, f"seed {seed}"


@pytest.mark.parametrize("truth", [log_normal, pareto, longest_of_moved, fixed_and_each])
def test_with_the_usual_memory_learners_cover_fresh_rounds_on_average(truth):
    bands = {0.5: 0.01, 0.9: 0.006, 0.99: 0.003}
    shares = {q: [] for q in bands}
    for seed in SEEDS:
        times, chance = learner(truth, seed, rounds=1000)
        fresh = [draw(truth, chance) for _ in range(1000)]
        for q in bands:
            shares[q].append(covered(times, q, fresh))

    for q, band in bands.items():
        assert sum(shares[q]) / len(SEEDS) == pytest.approx(q, abs=band)
        assert min(shares[q]) >= q - 5 * math.sqrt(q * (1 - q) * 2 / 1000)


@pytest.mark.parametrize(("rounds", "least"), [(30, 0.965), (100, 0.98)])
@pytest.mark.parametrize("truth", [log_normal, pareto, longest_of_moved, fixed_and_each])
def test_after_few_rounds_the_99_percent_quantile_is_nearly_kept(truth, rounds, least):
    shares = []
    for seed in SEEDS:
        times, chance = learner(truth, seed, rounds=rounds)
        shares.append(covered(times, 0.99, [draw(truth, chance) for _ in range(1000)]))

    assert sum(shares) / len(shares) >= least


@pytest.mark.parametrize("pair", [(20, 40), (6, 12), (1, 1)])
def test_pairs_never_seen_are_covered_where_the_law_holds(pair):
    shares = []
    for seed in SEEDS:
        times, chance = learner(log_normal, seed, rounds=1000)
        shares.append(covered(times, 0.99, [draw(log_normal, chance, [pair]) for _ in range(1000)]))

    assert 0.98 <= sum(shares) / len(shares) <= 0.997


def test_prequential_coverage_follows_a_change_of_regime():
    """Ten times slower from one round to the next.

    The 5 slowest of 500 remembered rounds are above the quantile. After t slow rounds they are the 5 slowest of those
    t, so that a share 5/t of the next is missed: 5 + 5·ln(500/5) = 28 until the memory holds nothing else.
    """
    chance = random.Random(9)
    timings = [draw(log_normal, chance) for _ in range(2000)]
    slower = [RebalanceTiming("plan", t.members, t.moved, 10 * t.pause_s, 0.0) for t in timings]

    before = coverage(timings, 0.99, memory_rounds=500)
    both = coverage(timings + slower, 0.99, memory_rounds=500)

    assert before.predicted == 1970
    assert before.share == pytest.approx(0.99, abs=4 * before.error(0.99))
    missed_more = (both.predicted - both.covered) - 2 * (before.predicted - before.covered)
    assert missed_more <= 28


@pytest.mark.parametrize("q", [0.5, 0.9, 0.95, 0.99])
def test_measured_handovers_are_covered(q):
    """Replicas that report one round wait for one another: rounds are not independent, hence 0.02 on top of chance.

    A group that has just started is slower than it is later, and the median of all rounds remembered is then too high;
    too low a quantile would be the mistake that costs events. The upper quantiles, which policies use, must fit.
    """
    timings = [RebalanceTiming(**fields) for fields in json.loads(MEASURED.read_text())]
    measured = coverage(timings, q)
    assert measured.predicted >= 100, "too few rounds: the long form of bench handover --steps random has more"
    band = 0.02 + 3 * measured.error(q)
    assert measured.share >= q - band, measured
    if q >= 0.9:
        assert measured.share <= q + band, measured
