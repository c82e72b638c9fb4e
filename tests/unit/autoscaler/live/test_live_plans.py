"""Plans while some replicas cannot join, and after the topic has grown."""

from hypothesis import given
from hypothesis import strategies as st
from live_worlds import HALVES, started

from autoscaler.live.publisher import extend_plan, feasible_plan
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


@given(st.data(), names, st.integers(1, 12), st.integers(0, 12))
def test_extending_a_plan_moves_no_partition_and_leaves_none_without_an_owner(
    data: st.DataObject, replicas: list[str], partitions: int, more: int
) -> None:
    placed = {at: data.draw(st.sampled_from(replicas)) for at in range(partitions)}
    rates = data.draw(st.dictionaries(st.integers(0, partitions - 1), st.floats(0, 500), max_size=partitions))
    larger = extend_plan(Plan(tuple(replicas), placed), partitions + more, rates)
    assert larger.assignment is not None
    assert larger.replicas == tuple(replicas)
    assert set(larger.assignment) == set(range(partitions + more))
    assert placed.items() <= larger.assignment.items()
    assert set(larger.assignment.values()) <= set(replicas)


@st.composite
def wanted(draw: st.DrawFn) -> Plan:
    replicas = tuple(draw(names))
    partitions = draw(st.integers(1, 12))
    return Plan(replicas, {at: draw(st.sampled_from(replicas)) for at in range(partitions)})


@given(wanted(), st.sets(st.sampled_from([f"payment-{n}" for n in range(6)])))
def test_a_feasible_plan_names_ready_replicas_and_moves_few_partitions(plan: Plan, able: set[str]) -> None:
    assert plan.assignment is not None
    possible = feasible_plan(plan, able)
    if not able & set(plan.replicas):
        assert possible is None
        return
    assert possible is not None
    assert possible.assignment is not None
    assert set(possible.replicas) == able & set(plan.replicas)
    assert set(possible.assignment) == set(plan.assignment), "every partition has an owner"
    assert set(possible.assignment.values()) <= set(possible.replicas)
    assert all(possible.assignment[at] == owner for at, owner in plan.assignment.items() if owner in able)
