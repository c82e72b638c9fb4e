"""Service times against their distributions, and the promise that an event's demand is the event's own."""

import numpy as np
import pytest

from autoscaler.simulator.service import BLOCK, ServiceTimes
from autoscaler.simulator.settings import Distribution, ServiceSettings

COUNT = 20 * BLOCK


def demands_s(**settings):
    return ServiceTimes(ServiceSettings(**settings), seed=4).demands_us(0, COUNT) / 1e6


def test_a_deterministic_time_is_the_time_and_the_overhead():
    times = ServiceTimes(ServiceSettings(service_time_s=0.005, overhead_s=0.0007), seed=1)

    assert times.service_us(3, 0, 0) == 5_700
    assert set(times.demands_us(10, 5)) == {5_700.0}


@pytest.mark.parametrize(
    ("settings", "sd_s"),
    [
        ({"distribution": Distribution.EXPONENTIAL}, 0.005),  # as large as the mean
        (
            {"distribution": Distribution.PARETO, "pareto_shape": 6.0},
            0.005 / np.sqrt(24),
        ),  # mean / √(shape (shape − 2))
    ],
)
def test_mean_and_deviation_are_those_of_the_distribution(settings, sd_s):
    drawn_s = demands_s(service_time_s=0.005, overhead_s=0.001, **settings)

    assert drawn_s.mean() == pytest.approx(0.006, abs=5 * sd_s / np.sqrt(COUNT))
    assert drawn_s.std() == pytest.approx(sd_s, rel=0.05)


def test_a_pareto_tail_falls_as_its_shape_says():
    drawn_s = demands_s(service_time_s=0.005, distribution=Distribution.PARETO, pareto_shape=2.5)
    smallest_s = 0.005 * 1.5 / 2.5

    assert drawn_s.min() >= smallest_s
    assert (drawn_s > 4 * smallest_s).mean() == pytest.approx(4**-2.5, rel=0.05)


@pytest.mark.parametrize("distribution", Distribution)
def test_a_demand_depends_on_seed_and_number_only(distribution):
    settings = ServiceSettings(distribution=distribution)
    times = ServiceTimes(settings, seed=9)
    rounded = [max(1, int(us + 0.5)) for us in times.demands_us(BLOCK - 3, BLOCK + 6)]

    asked_backwards = [times.service_us(event, 7, 0) for event in reversed(range(BLOCK - 3, 2 * BLOCK + 3))]
    other = ServiceTimes(settings, seed=10).demands_us(BLOCK - 3, 6)

    assert asked_backwards[::-1] == rounded
    assert (distribution is Distribution.DETERMINISTIC) == bool((other == times.demands_us(BLOCK - 3, 6)).all())


def test_speeds_divide_and_a_slow_time_multiplies():
    times = ServiceTimes(
        ServiceSettings(service_time_s=0.004, speeds=(1.0, 0.5), slow_from_s=1, slow_until_s=2, slow_factor=3), seed=1
    )

    assert [times.service_us(0, replica, 0) for replica in range(3)] == [4_000, 8_000, 4_000]
    assert times.service_us(0, 1, 0, speed=4.0) == 2_000
    assert [times.service_us(0, 0, at_us) for at_us in (999_999, 1_000_000, 1_999_999, 2_000_000)] == [
        4_000,
        12_000,
        12_000,
        4_000,
    ]


def test_nothing_takes_no_time():
    assert ServiceTimes(ServiceSettings(service_time_s=1e-9), seed=1).service_us(0, 0, 0) == 1


def test_everything_wrong_is_named_at_once():
    wrong = ServiceSettings(
        service_time_s=0, overhead_s=-1, pareto_shape=1, speeds=(1.0, 0.0), slow_factor=float("nan")
    )

    with pytest.raises(ValueError, match=r"service_time_s .*overhead_s .*pareto_shape .*speeds .*slow_factor .*nan"):
        ServiceTimes(wrong, seed=1)
