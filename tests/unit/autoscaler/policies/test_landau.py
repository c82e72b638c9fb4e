"""Tests of the controller of Landau et al. 2024. A replica serves 200 events/s and is filled to 150."""

from unit.autoscaler.builders import seen

from autoscaler.model import Action
from autoscaler.policies.landau import Landau, LandauSettings
from autoscaler.policies.settings import PolicySettings


def landau(**options):
    return Landau(PolicySettings(), LandauSettings(**options))


def owned(decision):
    """Return the partitions of each replica."""
    partitions = {}
    for partition, name in sorted(decision.plan.assignment.items()):
        partitions.setdefault(name, []).append(partition)
    return partitions


def test_it_packs_unowned_partitions_at_once_and_all_at_each_interval():
    policy = landau(packer="MBF")

    first = policy.decide(seen([100, 60, 40], replicas=1, owned=[], at_s=0))
    assert (first.action, owned(first)) == (Action.UP, {"payment-0": [0, 2], "payment-1": [1]})
    assert "3 of 3 partitions have no owner (0, 1, 2), packed by MBF" in first.reason

    for at_s in (1, 15, 29.9):
        later = policy.decide(seen([100, 60, 40], replicas=2, owned=[0, 1, 0], at_s=at_s))
        assert later.action is Action.NO_CHANGE
    assert "the next packing is in 0.1 s" in later.reason
    due = policy.decide(seen([100, 60, 40], replicas=2, owned=[0, 1, 0], at_s=30))
    assert due.reason.startswith("30 s since the last packing, packed by MBF")


def test_write_speeds_are_averages_over_the_window():
    policy = landau(packer="MBF", interval_s=1)
    for second in range(40):
        policy.decide(seen([100, 40], replicas=1, at_s=second))

    one_burst = policy.decide(seen([190, 40], replicas=1, at_s=40))
    assert (one_burst.action, one_burst.plan.count) == (Action.NO_CHANGE, 1), "(29·100 + 190)/30 + 40 fit 150"
    for second in range(41, 60):
        policy.decide(seen([190, 40], replicas=1, at_s=second))
    lasting = policy.decide(seen([190, 40], replicas=1, at_s=60))
    assert (lasting.action, lasting.plan.count) == (Action.UP, 2)


def test_a_full_replica_is_relieved_before_the_interval_ends():
    policy = landau(window_s=1)
    policy.decide(seen([90, 50], replicas=1, at_s=0))

    busy = policy.decide(seen([110, 80], replicas=1, at_s=1))
    full = policy.decide(seen([130, 80], replicas=1, at_s=2))

    assert busy.action is Action.NO_CHANGE, "above the packer's 150, below the 200 that it serves"
    assert (full.action, full.plan.count) == (Action.UP, 2)
    assert "payment-0 is full: 210 events/s written, 200 served (μ)" in full.reason
