"""Forecasts against known truths: ramps, steps, noise, waves. And the guard that lets them only help."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.estimation import GuardedForecast, Holt
from autoscaler.estimation.forecast import quantile

T = np.arange(400)


def ramp(rng):
    return 100 + 2.0 * T


def step(rng):
    return np.where(T < 200, 50.0, 150.0)


def noise(rng):
    return rng.poisson(100, len(T)).astype(float)


def sine(rng):
    return 200 + 150 * np.sin(2 * np.pi * T / 60)


def walk(rng):
    return 1000 + np.cumsum(rng.normal(0, 10, len(T)))


def told(forecast, rates, steps):
    """Return what was said of each moment that was `steps` ahead, and what came: (moments,) each."""
    said = []
    for rate in rates:
        forecast.observe(np.array([rate]))
        said.append(float(forecast.ahead(steps)[0]))
    return np.array(said[:-steps]), rates[steps:]


def guarded(**how):
    return GuardedForecast(Holt(1, **how))


def test_a_ramp_is_forecast_exactly_once_it_is_known():
    said, came = told(Holt(1), ramp(None), 5)

    assert said[60:] == pytest.approx(came[60:], rel=1e-3)


def test_what_does_not_change_is_forecast_from_the_first():
    said, came = told(Holt(1), np.full(50, 80.0), 3)

    assert said == pytest.approx(came)


def test_a_step_is_followed_and_its_overshoot_dies_away():
    said, _ = told(Holt(1), step(None), 2)

    assert said[199] == pytest.approx(50)
    assert said[200] > 100
    assert said[230:] == pytest.approx(150, rel=0.01)


def test_a_fraction_of_a_step_is_a_fraction_of_the_trend():
    holt = Holt(1)
    for rate in ramp(None):
        holt.observe(np.array([rate]))

    assert holt.ahead(1.5)[0] - holt.ahead(0.5)[0] == pytest.approx(2.0, rel=1e-3)


def test_nothing_falls_below_zero():
    holt = Holt(1)
    for rate in (100.0, 60.0, 20.0, 0.0):
        holt.observe(np.array([rate]))

    assert holt.ahead(30)[0] == 0


@pytest.mark.parametrize("truth", [ramp, sine])
def test_on_what_goes_on_as_it_went_the_guard_is_on_and_the_forecast_beats_persistence(truth):
    rates = truth(None)
    said, came = told(guarded(), rates, 3)

    assert np.abs(came - said)[60:].mean() < 0.85 * np.abs(came - rates[:-3])[60:].mean()
    assert (came - said)[60:].clip(0).mean() < 0.5 * (came - rates[:-3])[60:].clip(0).mean(), "what is not provided for"


def test_on_a_random_walk_the_guard_costs_next_to_nothing():
    for seed in range(5):
        rates = walk(np.random.default_rng(seed))
        said, came = told(guarded(), rates, 3)

        assert np.abs(came - said).mean() < 1.1 * np.abs(came - rates[:-3]).mean()


def test_the_guard_switches_off_where_the_forecast_is_worse_and_on_again():
    """A ramp, then jumps up and down by turns, of which each is taken for a trend; then a ramp again."""
    jumps = np.where(np.arange(60) % 2, 300.0, 100.0)
    forecast = guarded(level=0.9, trend=0.9)
    on = []
    for rate in np.concatenate((np.arange(60) * 5.0, jumps, np.arange(60) * 5.0 + 100)):
        forecast.observe(np.array([rate]))
        on.append(bool(forecast.helps(2)[0]))

    assert all(on[20:60])
    assert not any(on[85:120])
    assert all(on[150:])


def test_while_there_is_too_little_to_judge_by_persistence_speaks():
    forecast = guarded()
    for count, rate in enumerate((10.0, 20.0, 30.0, 40.0, 50.0, 60.0), start=1):
        forecast.observe(np.array([rate]))
        if count <= 5:
            assert forecast.ahead(1)[0] == rate

    assert forecast.ahead(1)[0] > 60


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.floats(0.1, 10))
def test_the_guarded_forecast_is_never_below_the_newest_rate(rates, steps):
    forecast = guarded()
    for rate in rates:
        forecast.observe(np.array([rate]))
        assert forecast.ahead(steps)[0] >= rate


@pytest.mark.parametrize("truth", [noise, walk])
@pytest.mark.parametrize("make", [Holt, lambda n: GuardedForecast(Holt(n))], ids=["holt", "guarded"])
def test_the_quantile_of_its_errors_covers_what_comes(truth, make):
    """100 partitions with 300 forecasts each, three steps ahead."""
    rates = np.column_stack([truth(np.random.default_rng(seed)) for seed in range(100)])
    for q, slack in ((0.5, 0.04), (0.9, 0.03)):
        assert share_covered(make(100), rates, q) == pytest.approx(q, abs=slack)


def test_the_quantile_of_a_wave_covers_its_slopes():
    """The errors are no chance there, but come in turns."""
    rates = sine(None)[:, None]

    assert share_covered(Holt(1), rates, 0.9) > 0.85
    assert share_covered(GuardedForecast(Holt(1)), rates, 0.9) > 0.85


def share_covered(forecast, rates, q):
    """Return the share of rates at or below what was forecast for them and the quantile of its errors."""
    bounds = []
    for row in rates:
        forecast.observe(row)
        bounds.append(forecast.ahead(3) + forecast.error_quantile(q, 3))
    return (rates[103:] <= np.array(bounds[100:-3])).mean()


def test_errors_are_those_of_the_horizon_that_is_asked_for():
    holt = Holt(1, level=1.0, trend=1.0)
    for rate in (10.0, 20.0, 30.0, 40.0, 45.0):
        holt.observe(np.array([rate]))

    came, forecast, rate = holt.past(2, 3)
    assert came[:, 0].tolist() == [30, 40, 45]
    assert forecast[:, 0].tolist() == [10, 40, 50], "the first knew no trend yet"
    assert rate[:, 0].tolist() == [10, 20, 30]
    assert holt.error_quantile(0.99, 2)[0] == 20, "too few for 99 %: the largest"
    assert holt.error_quantile(0.5, 2)[0] == 0
    assert holt.error_quantile(0.5, 1.4)[0] == 0, "two steps cover it"


def test_the_rank_of_a_quantile_leaves_out_what_is_unknown():
    errors = np.array([[1.0, np.nan, np.nan], [2.0, 5.0, np.nan], [3.0, 6.0, np.nan]])

    assert quantile(errors, 0.5).tolist()[:2] == [2.0, 6.0]
    assert np.isnan(quantile(errors, 0.5)[2])


def test_partitions_may_be_added():
    forecast = GuardedForecast(Holt(1))
    for second in range(30):
        forecast.observe(np.array([10.0 * second]))
    forecast.observe(np.array([300.0, 70.0]))

    assert forecast.ahead(2).tolist() == [pytest.approx(320, rel=0.01), 70.0]
    for second in range(31, 60):
        forecast.observe(np.array([10.0 * second, 70.0 + 5 * (second - 30)]))
    assert forecast.ahead(2) == pytest.approx([610, 225], rel=0.01)
    assert np.isfinite(forecast.error_quantile(0.9, 2)).all()


def test_what_makes_no_sense_is_refused():
    holt = Holt(2)
    with pytest.raises(ValueError, match="rates of 1 partitions after those of 2"):
        holt.observe(np.array([1.0]))
    with pytest.raises(ValueError, match="only 60 up to 30 are kept"):
        holt.error_quantile(0.9, 31)
    with pytest.raises(ValueError, match="between 0 and 1, got 1"):
        holt.error_quantile(1, 1)
    with pytest.raises(ValueError, match="level = 0"):
        Holt(1, level=0)
    with pytest.raises(ValueError, match="furthest = 0"):
        Holt(1, furthest=0)
