"""`linear` and `static`."""

import pytest
from unit.autoscaler.builders import seen

from autoscaler.model import Action
from autoscaler.policies.baselines import Linear, Static
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


def test_linear_says_why():
    assert LINEAR.decide(seen([60, 53])).reason == "113 events/s at 90 for each replica (μ·W·0.9): up 1 → 2"
    assert (
        LINEAR.decide(seen([20, 20], replicas=2)).reason == "40 events/s at 40 for each replica (μ·W·0.4): down 2 → 1"
    )
    assert LINEAR.decide(seen([30, 30])).reason == "60 events/s suit the present count: hold 1"


def test_linear_knows_that_no_replica_serves_more_than_its_rate_however_patient_the_target():
    patient = Linear(PolicySettings(latency_target_s=5.0))

    assert patient.decide(seen([100, 81])).reason == "181 events/s at 180 for each replica (μ·0.9): up 1 → 2"


def test_linear_lets_the_newest_leave_first_and_fills_gaps_in_the_names():
    down = LINEAR.decide(seen([20, 20], replicas=["payment-3", "payment-1", "payment-0"]))
    up = LINEAR.decide(seen([100, 100], replicas=["payment-0", "payment-2"]))

    assert down.plan.replicas == ("payment-3",)
    assert up.plan.replicas == ("payment-0", "payment-2", "payment-1")


def test_linear_makes_a_first_plan_when_nobody_owns_anything():
    decision = LINEAR.decide(seen([30, 30], owned=[]))

    assert decision.action is Action.REASSIGN
    assert decision.plan.replicas == ("payment-0",)
    assert decision.plan.assignment is None


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
