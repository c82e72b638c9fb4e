"""Plans while some replicas cannot join, and after the topic has grown."""

from hypothesis import given
from hypothesis import strategies as st
from live_worlds import ALL_ON_0, HALVES, started

from autoscaler.live.publisher import complete_plan
from autoscaler.model import Action, PartitionLoad, Plan
from contracts.progress import ReplicaState

names = st.lists(st.sampled_from([f"payment-{n}" for n in range(6)]), min_size=1, max_size=6, unique=True)


def test_new_partitions_go_to_the_replicas_with_the_least_load() -> None:
    world = started(2)
    world.loads.loads = (PartitionLoad(0, 100.0, 0), *world.loads.loads[1:], PartitionLoad(4, 0.0, 0))
    world.step()
    assert world.plans()[-1][2] == HALVES | {4: "payment-1"}


EACH = {partition: f"payment-{partition}" for partition in range(4)}
"""Partition n is on replica n."""


def test_each_replica_serves_once_it_is_ready_and_the_old_one_stays_until_all_are() -> None:
    world = started(2)
    names = ("payment-1", "payment-2", "payment-3")
    wanted = EACH | {0: "payment-2"}
    world.decide(Action.REASSIGN, names, wanted)
    assert world.plans()[-1] == ("start", ("payment-0", "payment-1"), HALVES), "no partition can move yet"
    world.report("payment-3", ReplicaState.WARM)
    assert world.plans()[-1] == ("part", ("payment-1", "payment-3", "payment-0"), ALL_ON_0 | {1: names[0], 3: names[2]})
    assert world.log.written[-1].reason == "until payment-2 can serve, the present owners keep the partitions"
    assert "draining" not in world.changes("payment-0")
    world.report("payment-2", ReplicaState.WARM)
    assert world.plans()[-1] == ("reassign", names, wanted)


def test_a_partition_moves_to_a_replica_that_serves_although_another_one_starts() -> None:
    world = started(2)
    names = ("payment-0", "payment-1", "payment-2")
    world.decide(Action.UP, names, HALVES | {0: "payment-1", 2: "payment-2"})
    assert world.plans()[-1] == ("part", names[:2], HALVES | {0: "payment-1"})


def test_a_group_that_each_plan_stops_moves_nothing_before_a_new_replica_is_ready() -> None:
    world = started(2, stops_all=True)
    names = ("payment-0", "payment-1", "payment-2", "payment-3")
    world.decide(Action.UP, names, EACH)
    assert len(world.plans()) == 1
    world.report("payment-2", ReplicaState.WARM)
    assert world.plans()[-1] == ("part", names[:3], EACH | {3: "payment-1"})


def test_a_plan_without_owners_names_each_replica_once_it_is_ready() -> None:
    world = started(1)
    names = ("payment-0", "payment-1", "payment-2")
    world.decide(Action.UP, names, None)
    assert len(world.plans()) == 1
    world.report("payment-2", ReplicaState.WARM)
    assert world.plans()[-1] == ("part", ("payment-0", "payment-2"), None)
    world.report("payment-1", ReplicaState.WARM)
    assert world.plans()[-1] == ("up", names, None)


@st.composite
def wanted(draw: st.DrawFn) -> Plan:
    replicas = tuple(draw(names))
    partitions = draw(st.integers(1, 12))
    return Plan(replicas, {at: draw(st.sampled_from(replicas)) for at in range(partitions)})


@given(wanted(), names, st.integers(1, 20))
def test_a_completed_plan_has_one_valid_owner_for_each_partition_and_moves_few(
    plan: Plan, able: list[str], partitions: int
) -> None:
    completed = complete_plan(plan, tuple(able), range(partitions))
    assert plan.assignment is not None
    assert completed.assignment is not None
    assert completed.replicas == tuple(able)
    assert set(completed.assignment) == set(range(partitions))
    assert set(completed.assignment.values()) <= set(able)
    kept = {at: owner for at, owner in plan.assignment.items() if owner in able and at < partitions}
    assert kept.items() <= completed.assignment.items()
