"""The controller of Landau et al. 2024, tick by tick. A replica serves 200 events/s and is given 150."""

import pytest
from unit.autoscaler.builders import seen
from unit.autoscaler.policies.timelines import Obedient

from autoscaler.model import Action
from autoscaler.packing.packers import PACKERS
from autoscaler.policies.landau import Landau, LandauSettings
from autoscaler.policies.registry import make_policy
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
        assert later.action is Action.HOLD
    assert later.reason == "no replica is full, and the next packing is in 0.1 s: hold 2"
    due = policy.decide(seen([100, 60, 40], replicas=2, owned=[0, 1, 0], at_s=30))
    assert due.reason.startswith("30 s since the last packing, packed by BFD: hold")


def test_speeds_are_averages_over_the_window():
    policy = landau(packer="FFD", interval_s=1)
    for second in range(40):
        policy.decide(seen([100, 40], replicas=1, at_s=second))

    one_burst = policy.decide(seen([190, 40], replicas=1, at_s=40))
    assert (one_burst.action, one_burst.plan.count) == (Action.HOLD, 1), "(29·100 + 190)/30 + 40 fit 150"
    for second in range(41, 60):
        policy.decide(seen([190, 40], replicas=1, at_s=second))
    lasting = policy.decide(seen([190, 40], replicas=1, at_s=60))
    assert (lasting.action, lasting.plan.count) == (Action.UP, 2)


def test_a_full_replica_is_relieved_before_the_interval_is_over():
    policy = landau(window_s=1)
    policy.decide(seen([90, 50], replicas=1, at_s=0))

    busy = policy.decide(seen([110, 80], replicas=1, at_s=1))
    full = policy.decide(seen([130, 80], replicas=1, at_s=2))

    assert busy.action is Action.HOLD, "above the packer's 150, below the 200 that it serves"
    assert (full.action, full.plan.count) == (Action.UP, 2)
    assert full.reason == "payment-0 is full: 210 events/s written, 200 served (μ), packed by MWF: up 1 → 2"


def test_a_partition_beyond_a_replica_is_alone_and_no_reason_to_pack_each_second():
    group = Obedient(landau(packer="BFD", window_s=1))
    group.at(0, [500, 20, 20])
    assert sorted(map(len, owned(group.decision).values())) == [1, 2]
    assert group.at(1, [500, 20, 20], owned=[0, 1, 1]).action is Action.HOLD


@pytest.mark.parametrize("name", PACKERS)
def test_any_packer_can_be_told_and_plans_what_it_packs(name):
    rates = [120, 90, 60, 45, 30, 10]
    told = name.upper().replace("_", "-")

    decision = make_policy("landau", options={"packer": told}).decide(seen(rates, replicas=3, at_s=0))

    assert sorted(decision.plan.assignment) == list(range(6))
    assert set(decision.plan.assignment.values()) == set(decision.plan.replicas)
    if name not in ("nf", "ff", "bf", "wf"):  # those take partitions in a random order
        owners = {partition: partition % 3 for partition in range(6)}
        packed = PACKERS[name]({p: float(rate) for p, rate in enumerate(rates)}, owners, 150.0)
        assert decision.plan.assignment == {p: f"payment-{consumer}" for p, consumer in packed.items()}


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"fill = 1.5: must be .*; packer = 'best': known are nf, "):
        make_policy("landau", options={"packer": "best", "fill": 1.5})
