"""An operator's pause or pin restricts every decision, and a replica that dies is replaced nevertheless."""

import pytest
from unit.autoscaler.builders import Wants, seen

from autoscaler.model import Action
from autoscaler.policies.guards.holds import Held, Restriction
from autoscaler.policies.settings import Limits

HOLDS = {
    "pause": Restriction(False, False, False, 0, "paused"),
    "scale-in": Restriction(True, False, True, 0, "scale-in paused"),
    "scale-out": Restriction(False, True, True, 0, "scale-out paused"),
    "pin 3": Restriction(False, False, True, 3, "pinned at 3"),
    "pin 9": Restriction(False, False, True, 9, "pinned at 9"),
}


@pytest.mark.parametrize(
    ("hold", "wanted", "count"),
    [
        ("pause", 4, 2), ("pause", 1, 2), ("pause", 2, 2), ("scale-in", 4, 4), ("scale-in", 1, 2), ("scale-out", 4, 2),
        ("scale-out", 1, 1), ("pin 3", 1, 3), ("pin 3", 3, 3), ("pin 3", 4, 3), ("pin 9", 2, 4),
    ],
)  # fmt: skip
def test_a_hold_permits_the_nearest_number_of_replicas(hold, wanted, count):
    guard = Held(Wants(wanted), hold=lambda: HOLDS[hold], limits=Limits(max_replicas=4))
    decision = guard.decide(seen([10] * 5, replicas=2))
    assert decision.plan.count == count
    assert set(decision.plan.assignment) == set(range(5))
    assert (HOLDS[hold].why in decision.reason) == (count != wanted)
    assert (decision.action is Action.NO_CHANGE) == (count == 2)


def test_moves_stop_only_while_everything_is_paused():
    move = Wants(2, action=Action.REASSIGN)
    for name, action in {"pause": Action.NO_CHANGE, "scale-in": Action.REASSIGN, "scale-out": Action.REASSIGN}.items():
        assert Held(move, hold=lambda name=name: HOLDS[name]).decide(seen([10] * 5, replicas=2)).action is action


def test_a_replica_that_dies_during_a_pause_is_replaced():
    guard = Held(Wants(3), hold=lambda: HOLDS["pause"])
    assert guard.decide(seen([10] * 5, replicas=3)).action is Action.NO_CHANGE
    guard.policy = Wants(1)
    replaced = guard.decide(seen([10] * 5, replicas=2))
    assert replaced.action is Action.UP
    assert replaced.plan.count == 3
    assert set(replaced.plan.assignment.values()) <= set(replaced.plan.replicas)


def test_after_a_hold_the_policy_decides_again():
    holds = [HOLDS["pin 3"], None]
    guard = Held(Wants(1), hold=lambda: holds.pop(0))
    assert guard.decide(seen([10] * 5, replicas=2)).plan.count == 3
    assert guard.decide(seen([10] * 5, replicas=3)).plan.count == 1


def test_replicas_that_another_guard_has_added_are_kept_while_scale_in_is_paused():
    window = Held(Wants(1), hold=lambda: HOLDS["scale-in"])
    assert window.decide(seen([10] * 6, replicas=3)).plan.count == 3
    assert window.decide(seen([10] * 6, replicas=5)).plan.count == 5, "after a pin at 5"
