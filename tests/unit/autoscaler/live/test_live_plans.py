"""Plans while some replicas cannot join, and after the topic has grown."""

from hypothesis import given
from hypothesis import strategies as st
from live_worlds import HALVES, started

from autoscaler.live.publisher import complete_plan
from autoscaler.model import PartitionLoad, Plan

names = st.lists(st.sampled_from([f"payment-{n}" for n in range(6)]), min_size=1, max_size=6, unique=True)


def test_new_partitions_go_to_the_replicas_with_the_least_load() -> None:
    world = started(2)
    world.loads.loads = (PartitionLoad(0, 100.0, 0), *world.loads.loads[1:], PartitionLoad(4, 0.0, 0))
    world.step()
    assert world.plans()[-1][2] == HALVES | {4: "payment-1"}


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
