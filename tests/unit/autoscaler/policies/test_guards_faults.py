"""What the group must survive: figures that make no sense, partitions that are stuck, policies that fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.builders import Wants, seen

from autoscaler.model import Action, Decision, Plan
from autoscaler.policies.guards.faults import Fallback, SetStuckAside, invalid
from autoscaler.policies.registry import make_policy


class Does:
    """A policy made of a function."""

    name = "does"

    def __init__(self, function):
        self.decide = function


def fails(observation):
    raise ZeroDivisionError("float division by zero")


def by_lag(observation):
    """Want one replica for each 100 events of lag, two at least."""
    return Wants(max(2, sum(load.lag for load in observation.partitions) // 100)).decide(observation)


def stuck_at(guard, at_s, lag, *, owned=(0, 1, 0, 1), not_ready=()):
    """Decide at `at_s`: 10 events/s in each partition, all served but those of partition 1."""
    return guard.decide(seen([10] * 4, [0, lag, 0, 0], replicas=2, owned=owned, at_s=at_s, not_ready=not_ready))


def test_a_stuck_partition_is_an_alert_and_no_reason_to_scale():
    guard = SetStuckAside(Does(by_lag), after_s=30)
    assert stuck_at(guard, 0, 5).reason == "wants 2"
    assert stuck_at(guard, 10, 105).reason == "wants 2"
    assert stuck_at(guard, 29, 295).reason == "wants 2"

    at_30 = stuck_at(guard, 30, 305)
    assert at_30.action is Action.HOLD, "305 events would ask for three"
    assert at_30.reason == (
        "wants 2; alert: partition 1 stuck for 30 s with 305 events of lag, while its owner payment-1 is ready; "
        "more replicas would not help"
    )
    assert "stuck for 40 s" in stuck_at(guard, 40, 405).reason
    assert stuck_at(guard, 41, 410).reason == "wants 4", "five events were served: it lives, and its lag counts"
    assert stuck_at(guard, 71, 710).reason.startswith("wants 2; alert: partition 1 stuck for 30 s")


@pytest.mark.parametrize(
    "change", [{"owned": (0, 0, 0, 1)}, {"not_ready": ("payment-1",)}], ids=["handed over", "owner not ready"]
)
def test_a_partition_is_given_time_anew_when_its_owner_changes_or_is_not_there(change):
    guard = SetStuckAside(Does(by_lag), after_s=30)
    stuck_at(guard, 0, 5)
    stuck_at(guard, 20, 205, **change)

    assert "alert" not in stuck_at(guard, 30, 305).reason
    assert "alert" not in stuck_at(guard, 45, 455).reason
    assert "alert: partition 1 stuck" in stuck_at(guard, 60, 605).reason


def test_new_partitions_begin_their_wait_when_they_appear():
    guard = SetStuckAside(Does(by_lag), after_s=30)
    guard.decide(seen([10], [100], replicas=1, at_s=0))
    guard.decide(seen([10, 10], [300, 50], replicas=1, at_s=20))

    assert "alert: partition 0 stuck" in guard.decide(seen([10, 10], [400, 150], replicas=1, at_s=30)).reason
    assert "partition 0 and 1 more stuck" in guard.decide(seen([10, 10], [600, 350], replicas=1, at_s=50)).reason


PLANS = {
    "it has no replica": Plan((), {}),
    "it names a replica twice": Plan(("a", "a"), dict.fromkeys(range(3), "a")),
    "it has 4 replicas for 3 partitions": Plan(("a", "b", "c", "d"), None),
    "it names a partition that does not exist, 7": Plan(("a",), dict.fromkeys([0, 1, 2, 7], "a")),
    "it leaves out partition 1": Plan(("a",), {0: "a", 2: "a"}),
    "it gives partitions to b, which it does not name": Plan(("a",), {0: "a", 1: "b", 2: "a"}),
}


@pytest.mark.parametrize("wrong", PLANS)
def test_plans_that_cannot_be_carried_out_are_told(wrong):
    observation = seen([1] * 3, replicas=2)

    assert invalid(observation, PLANS[wrong]) == wrong
    decision = Fallback(Does(lambda _: Decision(Action.UP, PLANS[wrong], "why"))).decide(observation)
    assert decision.action is Action.HOLD
    assert decision.reason == f"does made a plan that cannot be carried out: {wrong}; hold 2"


@given(st.lists(st.floats(0, 300), min_size=1, max_size=8), st.integers(0, 9))
def test_every_plan_of_a_sound_policy_passes(rates, replicas):
    observation = seen(rates, replicas=replicas)
    policy = make_policy("algorithm-2")

    assert Fallback(policy).decide(observation) == make_policy("algorithm-2").decide(observation)


def test_a_policy_that_fails_keeps_the_last_good_plan_then_gets_a_safe_count():
    guard = Fallback(Wants(3), after_s=60)
    good = guard.decide(seen([1] * 6, replicas=1, at_s=0))
    guard.policy = Wants(2)
    small = guard.decide(seen([1] * 6, replicas=3, at_s=50))
    assert (good.plan.count, small.plan.count) == (3, 2)
    in_force = [0] * 6  # as `Wants` plans it

    guard.policy = Does(fails)
    first = guard.decide(seen([1] * 6, replicas=2, owned=in_force, at_s=100))
    assert first.action is Action.HOLD
    assert first.reason == ("does failed: ZeroDivisionError: float division by zero; the last good plan stays for 60 s")
    assert guard.decide(seen([1] * 6, replicas=2, owned=in_force, at_s=159)).action is Action.HOLD

    safe = guard.decide(seen([1] * 6, replicas=2, owned=in_force, at_s=160))
    assert (safe.action, safe.plan.count) == (Action.UP, 3), "the most that a good plan had"
    assert sorted(safe.plan.assignment) == list(range(6))
    assert "does failed: ZeroDivisionError: float division by zero, for 60 s; 3 are safe: up 2 → 3" in safe.reason
    assert guard.decide(seen([1] * 6, replicas=3, at_s=161)).reason.endswith("for 61 s; hold 3")

    guard.policy = Wants(2)
    assert guard.decide(seen([1] * 6, replicas=3, at_s=162)).action is Action.DOWN, "it can decide again"
    guard.policy = Does(fails)
    assert "stays for 60 s" in guard.decide(seen([1] * 6, replicas=2, owned=in_force, at_s=163)).reason


def test_a_policy_that_never_worked_leaves_a_group_that_works_alone_and_starts_one_that_is_empty():
    guard = Fallback(Does(fails), safe_replicas=2)

    assert guard.decide(seen([1] * 6, replicas=4)).action is Action.HOLD, "more than is safe is kept"
    assert guard.decide(seen([1] * 6, replicas=1)).plan.count == 2
    assert guard.decide(seen([1] * 6, replicas=0)).plan.count == 2
    assert guard.decide(seen([1], replicas=1)).action is Action.HOLD, "no more than there are partitions"


def test_a_group_that_places_its_partitions_itself_gets_a_count():
    guard = Fallback(Does(fails), safe_replicas=3, counts_only=True)

    assert guard.decide(seen([1] * 6, replicas=1)).plan.assignment is None
    assert guard.decide(seen([1] * 6, replicas=3, owned=[])).action is Action.HOLD


def test_an_interruption_is_not_a_failure_of_the_policy():
    def interrupted(observation):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Fallback(Does(interrupted)).decide(seen([1]))
