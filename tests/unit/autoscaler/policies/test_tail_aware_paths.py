"""The paths of tail-aware: what arrives is as often among the worst ones as their weights say."""

import numpy as np
import pytest

from autoscaler.model import GroupObservation, PartitionLoad, RecentArrivals
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory
from autoscaler.policies.tail_aware.forecast import Ensemble
from autoscaler.policies.tail_aware.queues import backlogs

TICKS = 700
WARM_UP_TICKS = 100
RATE = 200.0
"""Events/s of the group, by which the backlog of an interval is computed."""


def rates(kind: str, chance: np.random.Generator) -> np.ndarray:
    """Return the events/s of each slot of 0.1 s, shape (ticks, slots)."""
    ticks, slots = np.arange(TICKS)[:, None], np.arange(10)
    kinds = {
        "sine": 150 + 100 * np.sin((ticks + slots / 10) / 20),
        "steps": np.repeat(chance.choice([80.0, 160.0, 240.0], TICKS // 20), 20)[:, None] + 0 * slots,
        "seconds of Pareto rate": np.minimum(600.0, 60 * (1 + chance.pareto(2.5, (TICKS, 1)))) + 0 * slots,
        "bursts": 1500.0 * (slots == 3) + 0 * ticks,
    }
    return kinds[kind]


def exceedances(kind: str, seed: int) -> np.ndarray:
    """Return for each tick the weight of the paths with a higher backlog than that of the events that arrived."""
    chance = np.random.default_rng(seed)
    history, found = ArrivalHistory(), []
    ensemble = Ensemble(history)
    paths = None
    for tick, rate in enumerate(rates(kind, chance)):
        counts = chance.poisson(rate[:, None] * 0.1 / 3, (10, 3))
        if paths is not None and tick > WARM_UP_TICKS:
            each = backlogs(np.concatenate((counts[None], paths.events)).sum(axis=2), RATE, 0.1)
            higher = np.where(each[1:] == each[0], 0.5, each[1:] > each[0])
            found.append(paths.weights @ higher)
        loads = tuple(PartitionLoad(number, float(count), 0) for number, count in enumerate(counts.sum(axis=0)))
        now = GroupObservation(float(tick), loads, (), {}, RATE, 0.05, recent=RecentArrivals(0.1, counts))
        ensemble.observe(history.observe(now), 1)
        paths = ensemble.paths(1, RATE)
    return np.array(found)


@pytest.mark.parametrize("kind", ["sine", "steps", "seconds of Pareto rate", "bursts"])
def test_arrivals_exceed_each_quantile_of_the_paths_as_often_as_the_paths_say(kind: str) -> None:
    found = np.concatenate([exceedances(kind, seed) for seed in (1, 2)])
    for share in (0.05, 0.25, 0.5, 0.75):
        assert np.mean(found < share) == pytest.approx(share, abs=0.08), share
