"""The schedule that was told, second by second."""

import pytest
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import Obedient

from autoscaler.model import Action
from autoscaler.policies.references import Clairvoyant

SCHEDULE = (((0, 1, 2),), ((0, 1), (2,)), ((0, 1), (2,)), ((0,), (1,), (2,)), ())


def test_each_second_has_its_packing():
    held = Obedient(Clairvoyant(SCHEDULE))

    changes = held.during([0.1, 1.1, 2.1, 3.1, 4.1, 99.1], [50, 50, 50], owned=[0, 0, 0])

    assert changes == [(1.1, 2), (3.1, 3), (4.1, 1)], "the last packing, of silence, needs one"


def test_few_partitions_move():
    policy = Clairvoyant(SCHEDULE)

    alone = policy.decide(seen([50, 50, 50], replicas=1, owned=[0, 0, 0], at_s=1.1))
    assert dict(alone.plan.assignment) == {0: "payment-0", 1: "payment-0", 2: "payment-1"}
    assert alone.reason == "second 1 needs 2: up 1 → 2"
    kept = policy.decide(seen([50, 50, 50], replicas=2, owned=[1, 1, 0], at_s=2.1))
    assert kept.action is Action.HOLD, "the same groups, whoever has them"
    moved = policy.decide(seen([50, 50, 50], replicas=2, owned=[0, 1, 1], at_s=2.1))
    assert (moved.action, moved.reason) == (Action.REASSIGN, "second 2 needs 2: reassign 1 of 3 partitions")


def test_together_in_the_packing_means_one_owner_and_apart_means_two():
    apart = Clairvoyant((((0,), (1,)),)).decide(seen([50, 50], replicas=2, owned=[0, 0]))

    assert apart.action is Action.REASSIGN
    assert apart.plan.assignment[0] != apart.plan.assignment[1]


def test_partitions_that_hold_nothing_stay_with_a_neighbour():
    policy = Clairvoyant((((0,), (1,)),))

    decision = policy.decide(seen([50, 50, 0, 0, 0], replicas=3, owned=[0, 1, 1, 2, 2]))

    assert decision.plan.assignment[2] == "payment-1", "where it was, beside partition 1"
    assert set(decision.plan.assignment) == set(range(5))
    assert len(set(decision.plan.assignment.values())) == 2


def test_a_partition_without_owner_gets_one():
    assert Clairvoyant((((0,),),)).decide(seen([5, 0], replicas=1, owned=[0])).action is Action.REASSIGN


def test_it_may_be_ahead_of_the_tick():
    policy = Clairvoyant(SCHEDULE, ahead_s=0.9)

    assert policy.decide(seen([50] * 3, replicas=1, at_s=0.1)).plan.count == 2, "second 1 is prepared at 0.1 s"


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ((), "must hold a packing for second 0 at least"),
        ((((0,),), ((0,), (0, 1))), "second 1: a partition is in two groups"),
        (((0, 1),), "second 0: (0, 1) is no list of groups of partitions"),
        (((("a",),),), "second 0: (('a',),) holds what is no partition number"),
    ],
)
def test_what_is_no_schedule(schedule, problem):
    with pytest.raises(ValueError, match="schedule") as refused:
        Clairvoyant(schedule)

    assert str(refused.value).endswith(problem)
