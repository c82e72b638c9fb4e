from hypothesis import given
from hypothesis import strategies as st

from autoscaler.live.publisher import feasible, moved, round_robin
from autoscaler.model import Plan

names = st.lists(st.sampled_from([f"payment-{n}" for n in range(6)]), min_size=1, max_size=6, unique=True)


@st.composite
def wanted(draw: st.DrawFn) -> Plan:
    replicas = tuple(draw(names))
    partitions = draw(st.integers(1, 12))
    return Plan(replicas, {at: draw(st.sampled_from(replicas)) for at in range(partitions)})


@given(wanted(), st.sets(st.sampled_from([f"payment-{n}" for n in range(6)])))
def test_a_feasible_plan_names_only_the_able_and_moves_only_what_it_must(plan: Plan, able: set[str]) -> None:
    assert plan.assignment is not None
    possible = feasible(plan, able)
    if not able & set(plan.replicas):
        assert possible is None
        return
    assert possible is not None
    assert possible.assignment is not None
    assert set(possible.replicas) == able & set(plan.replicas)
    assert set(possible.assignment) == set(plan.assignment), "every partition has an owner"
    assert set(possible.assignment.values()) <= set(possible.replicas)
    assert all(possible.assignment[at] == owner for at, owner in plan.assignment.items() if owner in able)


def test_orphans_go_to_the_least_loaded_by_count() -> None:
    plan = Plan(("a", "b", "c"), {0: "a", 1: "a", 2: "b", 3: "c", 4: "c", 5: "c"})
    possible = feasible(plan, {"a", "b"})
    assert possible is not None
    assert possible.assignment == {0: "a", 1: "a", 2: "b", 3: "b", 4: "a", 5: "b"}


def test_a_count_stays_a_count() -> None:
    assert feasible(Plan(("a", "b"), None), {"b"}) == Plan(("b",), None)


def test_round_robin_differs_by_one_at_most() -> None:
    assert round_robin(("a", "b"), 3).assignment == {0: "a", 1: "b", 2: "a"}


def test_moves_are_counted_where_both_sides_say_who_owns_what() -> None:
    assert moved({0: "a", 1: "a"}, {0: "a", 1: "b"}) == 1
    assert moved(None, {0: "a"}) == 0
    assert moved({0: "a"}, None) == 0
