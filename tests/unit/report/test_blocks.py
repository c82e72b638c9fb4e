"""Seconds of a run drawn again in blocks: what intervals hold, and what they must not."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report import statistics
from report.measures import percentile_us
from report.statistics import (
    Cells,
    Drawn,
    _percentile,
)
from report.statistics import drawn_difference as against
from report.statistics import drawn_interval as interval

SECONDS = 300
EDGES_S = np.array([0.1, 0.2, 0.4, 0.8])


def cells(late_share: float = 0.01, *, replicas: float = 2.0, seed: int = 5, lag_s: float = 0.0) -> Cells:
    """A run of 100 events a second, of which some share lies between 0.4 and 0.8 s; the target is 0.4 s."""
    chance = np.random.default_rng(seed)
    late = chance.binomial(100, late_share, SECONDS)
    within = np.stack([100 - late - (100 - late) // 2, (100 - late) // 2, 0 * late, late], axis=1)
    edges_s = EDGES_S + lag_s
    return Cells(np.full(SECONDS, 100), 100 - late, np.full(SECONDS, replicas), edges_s, within)


def draw(run: Cells, *, seed: int = 1) -> Drawn:
    return statistics.draw(run, resamples=2_000, seed=seed)


def test_a_run_does_not_differ_from_itself() -> None:
    drawn = draw(cells())
    found = against(0.0, drawn.in_sla, drawn.in_sla)
    assert found is not None
    assert (found.mean, found.low, found.high, found.distinguishable) == (0.0, 0.0, 0.0, False)


def test_what_costs_more_in_every_second_is_told_apart_though_both_vary_more_than_that() -> None:
    busy = dataclasses.replace(cells(), paid_s=np.repeat([1.0, 5.0, 2.0], SECONDS // 3))
    dearer = dataclasses.replace(busy, paid_s=busy.paid_s + 0.1)
    here, there = draw(dearer).replica_minutes, draw(busy).replica_minutes
    gap, alone = against(0.5, here, there), interval(13.83, here)
    assert gap is not None
    assert alone is not None
    assert gap.distinguishable
    assert gap.low == pytest.approx(0.5) == gap.high
    assert alone.high - alone.low > 0.5, "by themselves the two could not be told apart"


def test_chance_alone_is_not_a_difference_and_a_shift_is() -> None:
    one, other, worse = (draw(run) for run in (cells(seed=1), cells(seed=2), cells(0.03, seed=3)))
    noise, shift = against(0.0002, one.in_sla, other.in_sla), against(-0.02, worse.in_sla, one.in_sla)
    assert noise is not None
    assert shift is not None
    assert not noise.distinguishable
    assert shift.distinguishable
    assert shift.high < 0


def test_the_interval_of_a_steady_run_is_that_of_the_binomial() -> None:
    drawn = draw(cells(0.01)).in_sla
    deviation = np.sqrt(0.01 * 0.99 / (100 * SECONDS))
    found = interval(0.99, drawn)
    assert found is not None
    assert (found.high - found.low) / (2 * 1.96 * deviation) == pytest.approx(1, abs=0.15)


def test_lateness_that_comes_in_episodes_makes_wider_intervals_than_the_same_events_spread_out() -> None:
    spread = dataclasses.replace(cells(), in_sla=np.full(SECONDS, 99))
    episode = np.full(SECONDS, 100)
    episode[100:103] = 0
    widths = [
        interval(0.99, draw(dataclasses.replace(spread, in_sla=in_sla)).in_sla) for in_sla in (spread.in_sla, episode)
    ]
    assert widths[0] is not None
    assert widths[1] is not None
    assert widths[0].low == widths[0].high
    assert widths[1].high - widths[1].low > 0.015


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(0, 60), min_size=4, max_size=4).filter(any), per_mille=st.sampled_from([500, 990, 999])
)
def test_percentiles_of_draws_are_nearest_rank_as_everywhere(counts: list[int], per_mille: int) -> None:
    latency_us = np.repeat((EDGES_S * 1e6).astype(np.int64), counts)
    found = _percentile(np.cumsum(counts)[None, :].astype(float), EDGES_S, per_mille)
    assert round(found[0] * 1e6) == percentile_us(latency_us, per_mille / 1000)
