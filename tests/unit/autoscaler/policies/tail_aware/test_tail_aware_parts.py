"""Tests of parts of tail-aware against results computed by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.packing.few_moves import fewest_moves, largest_first, relieved
from autoscaler.policies.tail_aware.forecast import Demand
from autoscaler.policies.tail_aware.queues import Events, PlanExecution, TimeGrid, late_by_scenario
from autoscaler.policies.tail_aware.surprises import ForecastErrors

MU, W, SLOT = 200.0, 0.5, 0.1
NOTHING = np.zeros((1, 1))


def late(
    waiting=None, expected=None, *, variance=0.0, ready_s=0.0, switch_s=0.0, until_s=math.inf, begin_s=0.0, beyond=False
):
    """One partition on one replica. waiting, expected: events by slot."""
    past = NOTHING if waiting is None else np.array(waiting, float)[:, None]
    future = NOTHING if expected is None else np.array(expected, float)[:, None]
    before, owner = np.zeros(1, np.int64), np.array([1 if switch_s else 0])
    spread, switch, ready = np.array([variance]), np.array([switch_s]), np.array([ready_s])
    rates = np.array([MU, MU])
    events = Events(past, future[None], np.zeros((0, *future.shape)), spread)
    execution, grid = (
        PlanExecution(before, owner, switch, ready, rates),
        TimeGrid(SLOT, begin_s, W, until_s, math.inf, 10, beyond),
    )
    return float(late_by_scenario(events, np.zeros(1, np.int64), execution, grid)[0].sum())


def test_a_burst_is_in_time_up_to_the_events_served_within_the_target():
    assert late(expected=[100]) == 0
    assert late(expected=[130]) == pytest.approx(30)


loads = st.lists(st.floats(1, 60), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(loads, st.integers(1, 4), st.integers(0, 1000))
def test_the_exhaustive_search_equals_brute_force(sizes, limit, seed):
    sizes = np.array(sizes)
    owners = np.random.default_rng(seed).integers(-1, 3, len(sizes))
    best = np.inf
    for choice in itertools.product(range(4), repeat=len(sizes)):
        held = np.bincount(choice, sizes, minlength=4)
        alone = np.bincount(choice, minlength=4) == 1
        if len(set(choice)) <= limit and ((held <= 100.0 * (1 + 1e-9)) | alone).all():
            best = min(best, sum(size for size, now, then in zip(sizes, owners, choice, strict=True) if now != then))
    found, fits = fewest_moves(sizes, sizes, owners, np.full(4, 100.0), limit, 1_000_000)
    assert fits == (best < np.inf)
    if fits:
        assert sizes[found != owners].sum() == pytest.approx(best)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 150), min_size=1, max_size=40), st.integers(1, 8), st.integers(0, 1000))
def test_minimal_moves_never_exceeds_capacity_if_feasible(sizes, replicas, seed):
    sizes = np.array(sizes)
    owners = np.random.default_rng(seed).integers(-1, replicas, len(sizes))
    placed, fits = relieved(sizes, largest_first(sizes), owners, np.full(replicas, 100.0), np.zeros(replicas, np.int64))
    assert ((placed >= 0) & (placed < replicas)).all()
    held, number = np.bincount(placed, sizes, minlength=replicas), np.bincount(placed, minlength=replicas)
    if fits:
        assert ((held <= 100.0 + 1e-6) | (number == 1)).all()


def test_demand_follows_a_ramp_and_averages_noise():
    ramp, noise = Demand(), Demand()
    chance = np.random.default_rng(1)
    for second in range(200):
        ramp.observe(np.array([[10.0 + 0.5 * second, 20.0 + second]]))
        noise.observe(chance.poisson([[50.0, 50.0]]).astype(float))
    assert ramp.ahead() == pytest.approx([110.0, 220.0], rel=0.01)
    assert ramp.ahead(10) == pytest.approx([114.5, 229.0], rel=0.02)
    assert ramp.variance().sum() < 1
    assert noise.ahead() == pytest.approx([50.0, 50.0], abs=6)
    assert noise.variance() == pytest.approx([25.0, 25.0], rel=0.5), "of the split; the sum of both is another matter"
    assert [round(one.factor, 1) for one in noise.surprises()][:1] == [pytest.approx(1.2, abs=0.1)]


def slots(*counts: float) -> np.ndarray:
    """One partition; events by slot."""
    return np.array(counts, float)[:, None]


def test_a_repeated_forecast_error_is_expected_again_at_a_similar_load():
    surprises = ForecastErrors()
    for number in range(40):
        surprises.note(60.0, slots(0, 200) if number in {10, 30} else slots(60, 0))
        surprises.note(300.0, slots(300, 0))
    worst = surprises.ahead(60.0)[0]
    assert worst.factor == pytest.approx(200 / 60)
    assert sum(one.chance for one in surprises.ahead(60.0)) == pytest.approx(0.05, abs=0.03)
    assert worst.shape.together.tolist() == [0, 1], "they lie as they lay"
    assert sum(one.chance * (one.factor - 1) for one in surprises.ahead(300.0)) < 1e-3, "high loads brought none"
