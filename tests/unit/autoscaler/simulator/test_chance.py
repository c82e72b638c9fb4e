"""Tests of service times: their distributions, and their independence of other events."""

import numpy as np
import pytest

from autoscaler.simulator.chance import BLOCK, ServiceTimes
from autoscaler.simulator.settings import Distribution, ServiceSettings

COUNT = 20 * BLOCK


def demands_s(**settings):
    return ServiceTimes(ServiceSettings(**settings), seed=4).demands_us(0, COUNT) / 1e6


@pytest.mark.parametrize(
    ("settings", "sd_s"),
    [
        ({"distribution": Distribution.EXPONENTIAL}, 0.005),  # as large as the mean
        (
            {"distribution": Distribution.PARETO, "pareto_shape": 6.0},
            0.005 / np.sqrt(24),
        ),  # mean / √(shape (shape − 2))
        (
            {"distribution": Distribution.LOGNORMAL, "lognormal_sigma": 0.5},
            0.005 * np.sqrt(np.exp(0.25) - 1),
        ),  # mean · √(e^σ² − 1)
    ],
)
def test_mean_and_deviation_are_those_of_the_distribution(settings, sd_s):
    sampled_s = demands_s(service_time_s=0.005, overhead_s=0.001, **settings)

    assert sampled_s.mean() == pytest.approx(0.006, abs=5 * sd_s / np.sqrt(COUNT))
    assert sampled_s.std() == pytest.approx(sd_s, rel=0.05)


@pytest.mark.parametrize("distribution", Distribution)
def test_a_demand_depends_only_on_seed_and_number(distribution):
    settings = ServiceSettings(distribution=distribution)
    times = ServiceTimes(settings, seed=9)
    together = times.demands_us(BLOCK - 3, BLOCK + 6)
    one_by_one = [times.demands_us(event, 1)[0] for event in (2 * BLOCK + 2, BLOCK, BLOCK - 3)]
    other = ServiceTimes(settings, seed=10).demands_us(BLOCK - 3, 6)

    assert one_by_one == together[[BLOCK + 5, 3, 0]].tolist()
    assert (distribution is Distribution.DETERMINISTIC) == bool((other == together[:6]).all())
