"""Packing with few moves finds the same minimum as brute force, and never overfills a replica."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.packing.few_moves import fewest_moves, relieved

loads = st.lists(st.floats(1, 60), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(loads, st.integers(1, 4), st.integers(0, 1000))
def test_the_exhaustive_search_equals_brute_force(sizes, limit, seed):
    sizes = np.array(sizes)
    owners = np.random.default_rng(seed).integers(-1, 3, len(sizes))
    best = np.inf
    for choice in itertools.product(range(4), repeat=len(sizes)):
        load = np.bincount(choice, sizes, minlength=4)
        alone = np.bincount(choice, minlength=4) == 1
        if len(set(choice)) <= limit and ((load <= 100.0 * (1 + 1e-9)) | alone).all():
            best = min(best, sum(size for size, now, then in zip(sizes, owners, choice, strict=True) if now != then))
    found, fits = fewest_moves(sizes, np.argsort(-sizes), sizes, owners, np.full(4, 100.0), limit, 1_000_000)
    assert fits == (best < np.inf)
    if fits:
        assert sizes[found != owners].sum() == pytest.approx(best)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 150), min_size=1, max_size=40), st.integers(1, 8), st.integers(0, 1000))
def test_minimal_moves_never_exceeds_capacity_if_feasible(sizes, replicas, seed):
    sizes = np.array(sizes)
    owners = np.random.default_rng(seed).integers(-1, replicas, len(sizes))
    placed, fits = relieved(
        sizes, np.argsort(-sizes, kind="stable"), owners, np.full(replicas, 100.0), np.zeros(replicas, np.int64)
    )
    assert ((placed >= 0) & (placed < replicas)).all()
    load, number = np.bincount(placed, sizes, minlength=replicas), np.bincount(placed, minlength=replicas)
    if fits:
        assert ((load <= 100.0 + 1e-6) | (number == 1)).all()
