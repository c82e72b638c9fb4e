"""The paths of tail-aware: what arrives is as often among the worst ones as their weights say."""

from dataclasses import replace

import numpy as np
import pytest
from unit.autoscaler.builders import seen

from autoscaler.model import GroupObservation, RecentArrivals
from autoscaler.policies.registry import make_policy
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory, Ensemble
from autoscaler.policies.tail_aware.queues import backlogs
from autoscaler.ports import urgent_of

TICKS, SLOTS = np.arange(700)[:, None], np.arange(10)
WARM_UP_TICKS = 100
CHANCE = np.random.default_rng(1)
RATES = {
    "sine": 150 + 100 * np.sin((TICKS + SLOTS / 10) / 20),
    "sawtooth": 60.0 + 4 * (TICKS % 60) + 0 * SLOTS,
    "steps": np.repeat(CHANCE.choice([80.0, 160.0, 240.0], len(TICKS) // 20), 20)[:, None] + 0 * SLOTS,
    "Pareto": np.minimum(600.0, 60 * (1 + CHANCE.pareto(2.5, TICKS.shape))) + 0 * SLOTS,
    "bursts": 1500.0 * (SLOTS == 3) + 0 * TICKS,
    "rising bursts": (900.0 + 300 * np.sin(TICKS / 40)) * (SLOTS == 3),
}
"""Events/s of each slot of 0.1 s."""


def weights_above(rates: np.ndarray, intervals: int) -> np.ndarray:
    """Return for each tick the weight of the paths with a higher backlog than that of the events that arrived."""
    counts = np.random.default_rng(2).poisson(rates[:, :, None] / 30, (*rates.shape, 3))
    history, found = ArrivalHistory(), []
    ensemble = Ensemble(history)
    for tick, newest in enumerate(counts[:-intervals]):
        observation = replace(seen(newest.sum(axis=0).tolist()), recent=RecentArrivals(0.1, newest))
        ensemble.observe(history.observe(observation), intervals)
        if tick > WARM_UP_TICKS:
            paths = ensemble.paths(intervals, 200.0)
            came = counts[tick + 1 : tick + 1 + intervals].reshape(1, -1, 3)
            arrived, *each = backlogs(np.concatenate((came, paths.events)).sum(axis=2), 200.0, 0.1)
            found.append(paths.weights @ np.where(each == arrived, 0.5, np.array(each) > arrived))
    return np.array(found)


@pytest.mark.parametrize("intervals", [1, 4])
@pytest.mark.parametrize("kind", RATES)
def test_arrivals_exceed_each_quantile_of_the_paths_as_often_as_the_paths_say(kind: str, intervals: int) -> None:
    found = weights_above(RATES[kind], intervals)
    for share in (0.01, 0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.mean(found < share) == pytest.approx(share, abs=0.1 if share > 0.05 else 0.05), share


def burst_of(size: int, slots: int, at: int = -1) -> RecentArrivals:
    """Return arrivals of three partitions, `size` events in each, in one of these slots of 0.1 s."""
    counts = np.zeros((slots, 3), np.int64)
    counts[at] = size
    return RecentArrivals(0.1, counts)


def at(at_s: float, recent: RecentArrivals) -> GroupObservation:
    return replace(seen(recent.counts.sum(axis=0).tolist()), at_s=at_s, recent=recent)


def test_ticks_that_come_late_leave_the_memory_as_it_is() -> None:
    history, at_s = ArrivalHistory(), 0.0
    ensemble = Ensemble(history)
    for slots in [*[10] * 20, 11, 9, 10, 20, 1, 10]:
        at_s += slots / 10
        came = history.observe(at(at_s, burst_of(40, slots, at=max(-2, -slots))))
        ensemble.observe(came, 1)
        assert came.tolist() == [40] * 3
        assert ensemble.paths(1, 200.0).sizes.tolist() == pytest.approx([40] * 3)
    assert history.intervals.shape == (26, 10, 3)
    assert history.in_bursts


@pytest.mark.parametrize("place", [4, 9])
def test_a_burst_in_two_slots_is_one_burst(place: int) -> None:
    """Also in the last slot of an interval and the first one of the next. The readings divide each burst elsewhere."""
    history, chance = ArrivalHistory(), np.random.default_rng(4)
    ensemble, counts = Ensemble(history), np.zeros((601, 3))
    for slot in range(place, 600, 10):
        counts[slot] = np.rint(40 * chance.choice([0.1, 0.3, 0.5, 0.8, 1.0]))
        counts[slot + 1] = 40 - counts[slot]
    for tick in range(60):
        recent = RecentArrivals(0.1, counts[10 * tick : 10 * tick + 10].astype(np.int64))
        ensemble.observe(history.observe(at(tick + 1.0, recent)), 1)
        assert history.in_bursts
        if tick > WARM_UP_TICKS / 10:
            assert ensemble.paths(1, 200.0).sizes.sum() == pytest.approx(120, rel=0.1 if place == 4 else 0.6)


def test_an_urgent_decision_just_before_a_tick_does_not_make_the_tick_see_an_idle_group() -> None:
    policy = make_policy("tail-aware")
    urgent = urgent_of(policy)
    assert urgent is not None
    for tick in range(1, 21):
        steady = policy.decide(at(float(tick), burst_of(30, 10)))
    assert urgent(burst_of(400, 9)), "a burst of 1,200 events, which nobody expected"
    policy.decide(at(20.951, burst_of(400, 10)))
    following = policy.decide(at(21.0, burst_of(0, 1)))
    assert following.plan.count >= steady.plan.count
    assert following.alternatives[0].in_sla < 1, "the events of the burst wait"


def test_ticks_of_any_length_are_decided_without_a_fault() -> None:
    policy, chance, at_s = make_policy("tail-aware"), np.random.default_rng(3), 0.0
    urgent = urgent_of(policy)
    assert urgent is not None
    for tick in range(300):
        slots = int(chance.choice([1, 4, 9, 10, 10, 10, 10, 11, 15, 20, 35]))
        at_s += slots / 10
        urgent(burst_of(int(chance.integers(200)), max(1, slots - 1)))
        decision = policy.decide(at(at_s, burst_of(int(chance.integers(20, 80)), slots)))
        assert not decision.fault, f"tick {tick}: {decision.fault}"
