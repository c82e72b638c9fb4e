"""Plans while some replicas cannot join, and after the topic has grown."""

from hypothesis import given
from hypothesis import strategies as st
from live_worlds import HALVES, started

from autoscaler.live.publisher import complete_plan
from autoscaler.model import PartitionLoad, Plan
from contracts.journal import PlanWritten

names = st.lists(st.sampled_from([f"payment-{n}" for n in range(6)]), min_size=1, max_size=6, unique=True)


def test_new_partitions_get_owners_at_once() -> None:
    world = started(2)
    world.loads.loads += tuple(PartitionLoad(number, 0.0, 0) for number in (4, 5))
    world.step()
    action, replicas, assignment = world.plans()[-1]
    assert (action, replicas) == ("repair", ("payment-0", "payment-1"))
    assert assignment == HALVES | {4: "payment-0", 5: "payment-1"}
    assert "from 4 to 6 partitions" in world.log.written[-1].reason
    assert world.group.observe().assignment == assignment
    world.step(1)
    assert len(world.plans()) == 2
    (plan,) = [entry for entry in world.journal if isinstance(entry, PlanWritten)][1:]
    assert plan.moved == 0, "they had no owners before"


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
