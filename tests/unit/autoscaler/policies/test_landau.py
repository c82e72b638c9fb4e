"""The controller of Landau et al. 2024, tick by tick. A replica serves 200 events/s and is given 150."""

from unit.autoscaler.builders import seen

from autoscaler.model import Action
from autoscaler.policies.landau import Landau, LandauSettings
from autoscaler.policies.settings import PolicySettings


def landau(**options):
    return Landau(PolicySettings(), LandauSettings(**options))


def owned(decision):
    """Partitions by replica name."""
    held = {}
    for partition, name in sorted(decision.plan.assignment.items()):
        held.setdefault(name, []).append(partition)
    return held


def test_it_packs_at_once_what_has_no_owner_then_each_interval():
    policy = landau(packer="BFD")

    first = policy.decide(seen([100, 60, 40], replicas=1, owned=[], at_s=0))
    assert (first.action, owned(first)) == (Action.UP, {"payment-0": [0, 2], "payment-1": [1]})
    assert first.reason == "3 of 3 partitions have no owner (0, 1, 2), packed by BFD: up 1 → 2"

    for at_s in (1, 15, 29.9):
        later = policy.decide(seen([100, 60, 40], replicas=2, owned=[0, 1, 0], at_s=at_s))
        assert later.action is Action.NO_CHANGE
    assert later.reason == "no replica is full, and the next packing is in 0.1 s: hold 2"
    due = policy.decide(seen([100, 60, 40], replicas=2, owned=[0, 1, 0], at_s=30))
    assert due.reason.startswith("30 s since the last packing, packed by BFD: hold")


def test_speeds_are_averages_over_the_window():
    policy = landau(packer="FFD", interval_s=1)
    for second in range(40):
        policy.decide(seen([100, 40], replicas=1, at_s=second))

    one_burst = policy.decide(seen([190, 40], replicas=1, at_s=40))
    assert (one_burst.action, one_burst.plan.count) == (Action.NO_CHANGE, 1), "(29·100 + 190)/30 + 40 fit 150"
    for second in range(41, 60):
        policy.decide(seen([190, 40], replicas=1, at_s=second))
    lasting = policy.decide(seen([190, 40], replicas=1, at_s=60))
    assert (lasting.action, lasting.plan.count) == (Action.UP, 2)


def test_a_full_replica_is_relieved_before_the_interval_is_over():
    policy = landau(window_s=1)
    policy.decide(seen([90, 50], replicas=1, at_s=0))

    busy = policy.decide(seen([110, 80], replicas=1, at_s=1))
    full = policy.decide(seen([130, 80], replicas=1, at_s=2))

    assert busy.action is Action.NO_CHANGE, "above the packer's 150, below the 200 that it serves"
    assert (full.action, full.plan.count) == (Action.UP, 2)
    assert full.reason == "payment-0 is full: 210 events/s written, 200 served (μ), packed by MWF: up 1 → 2"
