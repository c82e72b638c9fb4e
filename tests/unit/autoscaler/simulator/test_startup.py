"""How long a requested replica keeps its group waiting."""

from unit.autoscaler.simulator.worlds import Story

from autoscaler.model import Action


def test_a_replica_is_paid_for_from_its_request_and_serves_once_it_is_ready():
    story = Story([(at, at // 100 % 2) for at in range(0, 5000, 100)], startup_s=2.0, pause_s=0.05)
    story.at(100).plan([0, 1])
    served = story.served()
    assert story.paid_ms() == [(0, 1), (100, 2)]
    assert min(at for at, by in served if by == 1) == 2150, "ready at 2100, and the pause"


def test_who_is_not_ready_when_it_is_left_out_was_paid_for_in_vain():
    story = Story([], startup_s=2.0).at(100).plan([0, 1]).at(1100).plan([0, 0])
    story.served()
    assert story.paid_ms() == [(0, 1), (100, 2), (1100, 1)]


def test_a_counts_only_plan_places_each_replica_when_it_is_ready():
    story = Story([], startup_s=2.0, partitions=4).at(100).plan(None, replicas=[0, 1], action=Action.UP)
    assert set(story.observe().assignment.values()) == {"payment-0"}
    story.at(2100)
    assert dict(story.observe().assignment) == {0: "payment-0", 1: "payment-0", 2: "payment-1", 3: "payment-1"}
    (change,) = story.group.changes
    assert (change.at_s, change.action, change.replicas, change.moved) == (0.1, Action.UP, 2, 2)


def test_a_counts_only_plan_with_fewer_replicas_is_carried_out_at_once():
    story = Story([], partitions=4, initial_replicas=2).at(100).plan(None, replicas=[0], action=Action.DOWN)
    assert set(story.observe().assignment.values()) == {"payment-0"}
    story.served()
    assert story.paid_ms() == [(0, 2), (100, 1)]
