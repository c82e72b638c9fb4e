"""`ffd-2022` over time. μ = 200 events/s; with W = 0.5 s a replica holds 200 events/s and 100 events."""

import pytest
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import Obedient

from autoscaler.model import Action
from autoscaler.packing.bins import Item
from autoscaler.policies.baselines import FirstFit2022, FirstFit2022Settings, fewest_partitions
from autoscaler.policies.settings import PolicySettings


def first_fit(**options):
    return FirstFit2022(PolicySettings(), FirstFit2022Settings(**options))


@pytest.mark.parametrize(
    ("rates", "lags", "planned"),
    [
        ([100, 100, 0], [0, 0, 0], 1),
        ([100, 101, 0], [0, 0, 0], 2),
        ([10, 10, 10], [50, 50, 1], 2),
        ([300, 10, 10], [0, 0, 0], 2),
        ([0, 0, 0], [0, 0, 0], 1),
        ([500], [0], 1),
        ([0], [0], 1),
    ],
)
def test_the_count_is_that_of_first_fit_with_all_that_a_replica_serves(rates, lags, planned):
    decision = first_fit().decide(seen(rates, lags, replicas=0))

    assert (decision.action, decision.plan.count) == (Action.UP, planned)
    assert set(decision.plan.assignment) == set(range(len(rates)))


def test_thirty_seconds_of_rest_after_each_change():
    held = Obedient(first_fit())

    assert held.during(range(5), [120, 120, 0]) == [(0, 2)]
    assert held.at(5, [120, 120, 120]).reason == (
        "360 events/s and 0 events of lag fit 3 with 200 events/s (μ) and 100 events (μ·W) each, "
        "but cooling down, 5 of 30 s: hold 2"
    )
    assert held.during(range(6, 31), [120, 120, 120]) == [(30, 3)]
    assert held.during(range(31, 62), [10, 10, 10]) == [(60, 1)]


def test_what_was_vetoed_is_asked_for_again():
    held = Obedient(first_fit(), obeys=False)

    assert [held.at(second, [120, 120, 0]).action for second in range(3)] == [Action.UP] * 3


def test_the_rest_is_an_option():
    held = Obedient(first_fit(cool_down_s=0))

    assert held.during(range(3), [120, 120, 0]) == [(0, 2)]
    assert held.during(range(3, 5), [10, 10, 0]) == [(3, 1)]
    with pytest.raises(ValueError, match=r"cool_down_s = -1: must be at least 0 s"):
        first_fit(cool_down_s=-1)


def test_nothing_moves_while_the_count_is_right():
    """The owner of partitions 0 and 1 holds more than it serves, but two replicas are what first fit says."""
    unfair = seen([150, 100, 100, 40], replicas=2, owned=[0, 0, 1, 1])

    assert first_fit().decide(unfair).action is Action.HOLD


def test_partitions_without_owner_get_one_even_while_cooling_down():
    held = Obedient(first_fit())

    held.at(0, [120, 120, 0])
    assert held.at(1, [120, 120, 0], owned=[]).action is Action.REASSIGN


def test_partitions_are_spread_by_number_then_by_rate():
    items = [Item(partition, rate, 0) for partition, rate in enumerate([9, 8, 6, 3, 2, 1, 0])]

    assert [one.partitions for one in fewest_partitions(items, 3)] == [(0, 5), (1, 4), (2, 3, 6)]
