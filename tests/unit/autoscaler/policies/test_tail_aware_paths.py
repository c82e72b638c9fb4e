"""The paths of tail-aware: what arrives is as often among the worst ones as their weights say."""

from dataclasses import replace

import numpy as np
import pytest
from unit.autoscaler.builders import seen

from autoscaler.model import RecentArrivals
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory
from autoscaler.policies.tail_aware.forecast import Ensemble
from autoscaler.policies.tail_aware.queues import backlogs

TICKS, SLOTS = np.arange(700)[:, None], np.arange(10)
WARM_UP_TICKS = 100
CHANCE = np.random.default_rng(1)
RATES = {
    "sine": 150 + 100 * np.sin((TICKS + SLOTS / 10) / 20),
    "steps": np.repeat(CHANCE.choice([80.0, 160.0, 240.0], len(TICKS) // 20), 20)[:, None] + 0 * SLOTS,
    "Pareto": np.minimum(600.0, 60 * (1 + CHANCE.pareto(2.5, TICKS.shape))) + 0 * SLOTS,
    "bursts": 1500.0 * (SLOTS == 3) + 0 * TICKS,
}
"""Events/s of each slot of 0.1 s."""


def weights_above(rates: np.ndarray) -> np.ndarray:
    """Return for each tick the weight of the paths with a higher backlog than that of the events that arrived."""
    history, found = ArrivalHistory(), []
    ensemble, paths = Ensemble(history), None
    for tick, counts in enumerate(np.random.default_rng(2).poisson(rates[:, :, None] / 30, (*rates.shape, 3))):
        if paths and tick > WARM_UP_TICKS:
            arrived, *each = backlogs(np.concatenate((counts[None], paths.events)).sum(axis=2), 200.0, 0.1)
            found.append(paths.weights @ np.where(each == arrived, 0.5, each > arrived))
        observation = replace(seen(counts.sum(axis=0).tolist()), recent=RecentArrivals(0.1, counts))
        ensemble.observe(history.observe(observation), 1)
        paths = ensemble.paths(1, 200.0)
    return np.array(found)


@pytest.mark.parametrize("kind", RATES)
def test_arrivals_exceed_each_quantile_of_the_paths_as_often_as_the_paths_say(kind: str) -> None:
    found = weights_above(RATES[kind])
    for share in (0.05, 0.25, 0.5, 0.75):
        assert np.mean(found < share) == pytest.approx(share, abs=0.08), share
