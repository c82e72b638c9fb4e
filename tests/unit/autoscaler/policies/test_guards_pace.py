"""Rate limit and stabilisation windows, each as a timeline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.builders import Wants, seen

from autoscaler.model import Action
from autoscaler.policies.guards import RateLimit, Stabilised


class World:
    """A group that becomes what is decided, at once."""

    def __init__(self, guard, *, replicas, partitions=12):
        self.guard = guard
        self.replicas = replicas
        self.partitions = partitions
        self.reason = ""

    def at(self, at_s, wanted, *, counts_only=True):
        """Return the count after the decision at `at_s`, at which the policy inside wants `wanted`."""
        self.guard.policy = Wants(wanted, counts_only=counts_only)
        decision = self.guard.decide(seen([1] * self.partitions, replicas=self.replicas, at_s=at_s))
        self.reason = decision.reason
        if decision.action is not Action.HOLD:
            self.replicas = decision.plan.count
        return self.replicas


def test_a_surge_gets_at_once_what_the_budget_has_and_the_rest_when_it_is_there_again():
    world = World(RateLimit(Wants(1), replicas=3, window_s=10), replicas=1)

    assert world.at(0, 6) == 4
    assert world.reason == "wants 6; at most 3 replicas come or go within 10 s: up 1 → 4"
    assert world.at(9.5, 6) == 4
    assert world.reason == "wants 6; vetoed: at most 3 replicas come or go within 10 s"
    assert world.at(10, 6) == 6


def test_up_and_down_share_one_budget():
    world = World(RateLimit(Wants(1), replicas=3, window_s=10), replicas=4)

    assert world.at(0, 6) == 6
    assert world.at(4, 2) == 5, "one of three is left, for either direction"
    assert world.at(10, 2) == 3, "the two of 0 s are back"
    assert world.at(13, 1) == 3
    assert world.at(14, 1) == 2, "and the one of 4 s"


def test_what_another_guard_vetoed_costs_no_budget():
    limit = RateLimit(Wants(3), replicas=2, window_s=10)

    assert limit.decide(seen([1] * 5, replicas=1, at_s=0)).action is Action.UP
    assert limit.decide(seen([1] * 5, replicas=1, at_s=1)).action is Action.UP, "nothing came of the first"


def test_a_part_of_a_plan_is_a_whole_plan():
    decision = RateLimit(Wants(5), replicas=2, window_s=10).decide(seen([1] * 6, replicas=1))

    assert decision.plan.count == 3
    assert set(decision.plan.assignment) == set(range(6))
    assert set(decision.plan.assignment.values()) == set(decision.plan.replicas)


def test_to_reassign_is_free():
    limit = RateLimit(Wants(2, action=Action.REASSIGN), replicas=1, window_s=10)

    assert [limit.decide(seen([1] * 5, replicas=2, at_s=at_s)).action for at_s in (0, 1)] == [Action.REASSIGN] * 2


@given(st.lists(st.tuples(st.floats(0.1, 8), st.integers(1, 12)), max_size=20))
def test_no_window_sees_more_changes_than_the_limit(steps):
    world = World(RateLimit(Wants(1), replicas=3, window_s=10), replicas=4)
    now_s, changes = 0.0, []
    for wait_s, wanted in steps:
        now_s, before = now_s + wait_s, world.replicas
        changes.append((now_s, abs(world.at(now_s, wanted) - before)))

    for end_s, _ in changes:
        assert sum(many for at_s, many in changes if end_s - 9.9 < at_s <= end_s) <= 3


def test_down_goes_to_the_most_that_was_wanted_within_the_window():
    world = World(Stabilised(Wants(1), down_s=10), replicas=6)

    assert world.at(0, 3) == 6, "the count at the start counts as wanted"
    assert world.reason == "wants 3; vetoed: the most wanted within 10 s is 6"
    assert world.at(4, 5) == 6
    assert world.at(9, 2) == 6
    assert world.at(10, 2) == 5, "at 10 s the wish of 4 s is the largest"
    assert world.reason == "wants 2; the most wanted within 10 s is 5: down 6 → 5"
    assert world.at(14, 2) == 2, "what is left of the window wants 2"


def test_one_wish_for_more_starts_the_wait_anew():
    world = World(Stabilised(Wants(1), down_s=10), replicas=3)

    assert [world.at(at_s, 1) for at_s in (0, 5, 9)] == [3, 3, 3]
    assert world.at(9.5, 3) == 3
    assert world.at(11, 1) == 3
    assert world.at(19, 1) == 3
    assert world.at(19.5, 1) == 1


def test_up_waits_until_all_of_its_window_wants_more():
    world = World(Stabilised(Wants(1), up_s=3), replicas=2)

    assert [world.at(at_s, 4) for at_s in (0, 1, 2)] == [2, 2, 2]
    assert world.at(2.5, 3) == 2
    assert world.at(3, 5) == 3, "the fewest wanted since 1 s"
    assert world.at(3.5, 3) == 3
    assert world.at(5, 5) == 3, "3 were enough a moment ago"


def test_up_is_not_delayed_by_default():
    assert World(Stabilised(Wants(1), down_s=300), replicas=2).at(0, 4) == 4


def test_a_plan_with_owners_waits_instead_of_being_changed():
    world = World(Stabilised(Wants(1), up_s=2.5, down_s=4), replicas=4)

    assert world.at(0, 2, counts_only=False) == 4
    assert world.at(2, 3, counts_only=False) == 4
    assert world.at(4, 2, counts_only=False) == 4, "3 was wanted at 2 s, and this plan is for 2"
    assert world.at(6, 2, counts_only=False) == 2

    assert world.at(7, 3, counts_only=False) == 2
    assert world.at(8, 4, counts_only=False) == 2, "at 6 s two were enough"
    assert world.at(9, 6, counts_only=False) == 6, "a rising load gets what it needs now"


@pytest.mark.parametrize("guard", [Stabilised(Wants(1), up_s=9, down_s=9), RateLimit(Wants(1), replicas=1, window_s=9)])
def test_to_hold_is_to_hold(guard):
    guard.policy = Wants(3)

    assert guard.decide(seen([1] * 5, replicas=3)) == Wants(3).decide(seen([1] * 5, replicas=3))
