"""`linear`, `static` and `ffd-2022`. μ = 200 events/s and W = 0.5 s: a replica holds 200 events/s and 100 events."""

import pytest
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import Obedient

from autoscaler.model import Action
from autoscaler.packing.bins import Item
from autoscaler.policies.baselines import FirstFit2022, FirstFit2022Settings, Linear, Static, fewest_partitions
from autoscaler.policies.settings import PolicySettings

LINEAR = Linear(PolicySettings())


@pytest.mark.parametrize(
    ("total", "now", "action", "planned"),
    [
        (90, 1, Action.HOLD, 1),  # exactly μ·W·0.9
        (91, 1, Action.UP, 2),
        (360, 1, Action.UP, 4),
        (41, 2, Action.HOLD, 2),
        (40, 2, Action.DOWN, 1),
        (0, 3, Action.DOWN, 1),
        (0, 1, Action.HOLD, 1),
        (0, 0, Action.UP, 1),
    ],
)
def test_linear_divides_the_total_rate_by_what_a_replica_serves_in_time(total, now, action, planned):
    decision = LINEAR.decide(seen([total / 2, total / 2], replicas=now))

    assert (decision.action, decision.plan.count) == (action, planned)
    assert decision.plan.assignment is None, "the group's own assignor places the partitions"


def test_linear_knows_that_no_replica_serves_more_than_its_rate_however_patient_the_target():
    patient = Linear(PolicySettings(latency_target_s=5.0))

    assert patient.decide(seen([100, 81])).reason == "181 events/s at 180 for each replica (μ·0.9): up 1 → 2"


def test_static_over_time():
    static = Static(PolicySettings(static_replicas=2))

    start = static.decide(seen([0] * 5, replicas=1, owned=[]))
    assert start.action is Action.UP
    assert sorted(start.plan.assignment.values()) == ["payment-0"] * 3 + ["payment-1"] * 2
    assert start.reason == "static keeps 2: up 1 → 2"

    overloaded = static.decide(seen([400] * 5, replicas=2))
    assert overloaded.action is Action.HOLD
    assert overloaded.reason == "static keeps 2: hold 2"

    without_owner = static.decide(seen([10] * 5, replicas=2, owned=[0, 0, 1, 1]))
    assert without_owner.action is Action.REASSIGN
    assert set(without_owner.plan.assignment) == set(range(5))

    too_many = static.decide(seen([10] * 5, replicas=3))
    assert (too_many.action, too_many.plan.count) == (Action.DOWN, 2)


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


def test_partitions_without_owner_get_one_even_while_cooling_down():
    held = Obedient(first_fit())

    held.at(0, [120, 120, 0])
    assert held.at(1, [120, 120, 0], owned=[]).action is Action.REASSIGN


def test_partitions_are_spread_by_number_then_by_rate():
    items = [Item(partition, rate, 0) for partition, rate in enumerate([9, 8, 6, 3, 2, 1, 0])]

    placed = [[item.partition for item in one.items] for one in fewest_partitions(items, 3)]
    assert placed == [[0, 5], [1, 4], [2, 3, 6]]
