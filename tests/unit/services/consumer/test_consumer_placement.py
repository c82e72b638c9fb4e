"""The placement of partitions: as planned, or even with few moves."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contracts.plan import PlanRecord
from services.consumer.rebalance import NO_GENERATION, MemberMetadata, place

PROPERTY = settings(max_examples=100, deadline=None)  # a busy machine is no error
NAMES = [f"payment-{number}" for number in range(6)]


def plan(replicas: list[str], assignment: dict[int, str] | None) -> PlanRecord:
    return PlanRecord(epoch=1, at_us=0, replicas=tuple(replicas), assignment=assignment, reason="")


def newest(group: dict[str, MemberMetadata]) -> dict[str, str]:
    """Return name → id of its newest process."""
    ids = sorted(group, key=lambda member_id: (group[member_id].incarnation, member_id))
    return {group[member_id].name: member_id for member_id in ids}


def moves(owners: dict[str, list[int]], previous: dict[int, str]) -> int:
    return sum(1 for owner, mine in owners.items() for member_id in mine if previous.get(member_id, owner) != owner)


groups = st.dictionaries(
    st.uuids().map(str),
    st.builds(
        MemberMetadata,
        name=st.sampled_from(NAMES),
        incarnation=st.sampled_from(["1", "2", "3"]),
        is_draining=st.booleans(),
    ),
    min_size=1,
    max_size=8,
)
plans = st.none() | st.builds(
    plan,
    replicas=st.lists(st.sampled_from(NAMES), unique=True),
    assignment=st.none() | st.dictionaries(st.integers(0, 20), st.sampled_from(NAMES)),
)
partition_lists = st.integers(0, 20).map(lambda count: list(range(count)))


@PROPERTY
@given(plans, groups, partition_lists, st.data())
def test_every_partition_has_exactly_one_owner_and_every_member_an_entry(the_plan, group, partitions, data):
    previous = data.draw(st.dictionaries(st.sampled_from(partitions or [0]), st.sampled_from([*group, "gone"])))
    owners = place(the_plan, group, partitions, previous)
    assert sorted(owners) == sorted(group)
    assert sorted(partition for mine in owners.values() for partition in mine) == partitions


@PROPERTY
@given(plans, groups, partition_lists, st.sets(st.sampled_from(NAMES)), st.data())
def test_only_unowned_partitions_of_absent_replicas_wait(the_plan, group, partitions, absent_in_grace, data):
    previous = data.draw(st.dictionaries(st.sampled_from(partitions or [0]), st.sampled_from([*group, "gone"])))
    owners = place(the_plan, group, partitions, previous, absent_in_grace)
    unowned = set(partitions) - {partition for mine in owners.values() for partition in mine}
    assignment = (the_plan.assignment if the_plan else None) or {}
    assert unowned == {p for p in partitions if assignment.get(p) in absent_in_grace and previous.get(p) not in group}


@PROPERTY
@given(plans, groups, partition_lists)
def test_a_repeated_placement_moves_no_partition(the_plan, group, partitions):
    once = place(the_plan, group, partitions, {})
    previous = {partition: owner for owner, mine in once.items() for partition in mine}
    assert place(the_plan, group, partitions, previous) == once


@PROPERTY
@given(plans, groups, partition_lists)
def test_draining_members_own_nothing_while_others_exist(the_plan, group, partitions):
    owners = place(the_plan, group, partitions, {})
    if not all(group[member_id].is_draining for member_id in newest(group).values()):
        assert not any(owners[member_id] for member_id, member in group.items() if member.is_draining)


@PROPERTY
@given(groups, partition_lists, st.data())
def test_present_members_own_their_planned_partitions(group, partitions, data):
    group = {member_id: replace(member, is_draining=False) for member_id, member in group.items()}
    assignment = data.draw(st.fixed_dictionaries({member_id: st.sampled_from(NAMES) for member_id in partitions}))
    by_name = newest(group)
    owners = place(plan(NAMES, assignment), group, partitions, {})
    for partition, name in assignment.items():
        if name in by_name:
            assert partition in owners[by_name[name]]


@PROPERTY
@given(st.integers(1, 6), partition_lists, st.data())
def test_counts_are_even_and_moves_minimal_without_an_assignment(count, partitions, data):
    group = {f"{name}-id": MemberMetadata(name=name) for name in NAMES[:count]}
    ids = [*group]
    previous = data.draw(st.fixed_dictionaries({member_id: st.sampled_from(ids) for member_id in partitions}))
    owners = place(None, group, partitions, previous)
    sizes = sorted(len(mine) for mine in owners.values())
    assert sizes[-1] - sizes[0] <= 1
    current = sorted((sum(1 for owner in previous.values() if owner == member_id) for member_id in ids), reverse=True)
    share, remainder = divmod(len(partitions), count)
    unavoidable = sum(max(0, mine - share - (rank < remainder)) for rank, mine in enumerate(current))
    assert moves(owners, previous) == unavoidable


def test_members_keep_their_partitions_if_all_are_draining():
    names = {"a": "payment-0", "b": "payment-1"}
    group = {member_id: MemberMetadata(name=name, is_draining=True) for member_id, name in names.items()}
    assert place(plan(NAMES[:2], {0: "payment-0", 1: "payment-1"}), group, [0, 1], {}) == {"a": [0], "b": [1]}


def test_the_later_of_two_processes_with_one_name_owns_the_partitions():
    """By the generation of its first assignment, and by its own clock if that is equal."""
    for generations, incarnations in (((4, NO_GENERATION), ("0009", "0002")), ((0, 0), ("0001", "0002"))):
        group = {
            member_id: MemberMetadata(name="payment-0", incarnation=incarnation, first_generation=generation)
            for member_id, incarnation, generation in zip(("b-old", "a-new"), incarnations, generations, strict=True)
        }
        assert place(plan(["payment-0"], {0: "payment-0"}), group, [0], {0: "b-old"}) == {"b-old": [], "a-new": [0]}
