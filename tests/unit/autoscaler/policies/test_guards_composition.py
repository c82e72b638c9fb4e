"""All guards together: their order, and a day on which much goes wrong."""

import dataclasses

import pytest
from unit.autoscaler.builders import Wants, seen

from autoscaler.model import Action, PartitionLoad
from autoscaler.policies.guards.composition import guarded
from autoscaler.policies.settings import GuardSettings, PolicySettings

EVERYTHING = GuardSettings(
    counts_only=True,
    cool_down_up_s=1,
    stabilisation_down_s=1,
    keep_while_draining=True,
    hold_during_handover=True,
    rate_limit=1,
)
NOTHING = GuardSettings(stuck_after_s=0, judge_s=0, fallback=False)


def chain(guards):
    """Return the names of the guards, from the inside out."""
    policy, names = guarded(Wants(1), PolicySettings(), guards), []
    while not isinstance(policy, Wants):
        names.insert(0, type(policy).__name__)
        policy = policy.policy
    return names


def test_guards_wrap_from_the_inside_out():
    always = ["Bounds", "HoldWhileChanging", "HoldWhenUnknown"]

    assert chain(NOTHING) == always
    assert chain(GuardSettings()) == [*always[:2], "SetStuckAside", "NoticeNoHelp", "Fallback", always[2]]
    assert chain(EVERYTHING) == [
        "CountsOnly",
        "Bounds",
        "Stabilised",
        "KeepWhileDraining",
        "HoldWhileChanging",
        "HoldDuringHandover",
        "RateLimit",
        "CoolDown",
        "SetStuckAside",
        "NoticeNoHelp",
        "Fallback",
        "HoldWhenUnknown",
    ]


def test_guards_are_told_what_the_settings_say():
    settings = PolicySettings(replica_prefix="till")

    policy = guarded(Wants(5, counts_only=True), settings, GuardSettings(rate_limit=2, rate_window_s=9))

    assert policy.decide(seen([1] * 5, replicas=1, at_s=0)).plan.replicas == ("payment-0", "till-0", "till-1")
    assert policy.decide(seen([1] * 5, replicas=3, at_s=8)).action is Action.HOLD
    assert policy.decide(seen([1] * 5, replicas=3, at_s=9)).plan.count == 5


def test_a_day_on_which_much_goes_wrong():
    inner = Wants(3)
    policy = guarded(inner, PolicySettings(), GuardSettings(cool_down_down_s=5, fallback_after_s=10))

    surge = policy.decide(seen([100] * 5, replicas=1, at_s=0))
    assert (surge.action, surge.plan.count) == (Action.UP, 3)

    lost = dataclasses.replace(seen([100] * 5, replicas=3, at_s=1), partitions=(PartitionLoad(0, 1.0, -1),))
    assert policy.decide(lost).reason == "nothing is decided on what is unknown: lag of partition 0 is -1"

    inner.count = 1
    assert policy.decide(seen([10] * 5, replicas=3, at_s=2)).reason.endswith("vetoed: cooling down, 2 of 5 s")

    inner.count = -1  # `Wants` fails on that
    broken = policy.decide(seen([10] * 5, replicas=3, at_s=3))
    assert broken.action is Action.HOLD
    assert "wants failed: IndexError" in broken.reason
    assert broken.plan.replicas == ("payment-0", "payment-1", "payment-2")
    assert policy.decide(seen([10] * 5, replicas=3, at_s=14)).reason.endswith("for 11 s; hold 3")

    inner.count = 1
    calm = policy.decide(seen([10] * 5, replicas=3, at_s=15))
    assert (calm.action, calm.plan.count) == (Action.DOWN, 1)


def test_without_the_fallback_an_error_ends_the_loop():
    with pytest.raises(IndexError):
        guarded(Wants(-1), PolicySettings(), NOTHING).decide(seen([1]))


def test_settings_out_of_range():
    with pytest.raises(ValueError, match="rate_limit = -1: must be 0 replicas or more; judge_s = -2: must be 0 s or"):
        GuardSettings(rate_limit=-1, judge_s=-2)
    with pytest.raises(ValueError, match="safe_replicas = 4: must be at most maximum = 3"):
        GuardSettings(safe_replicas=4, maximum=3)
