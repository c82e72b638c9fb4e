"""The placement of partitions: as planned, or even with few moves."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.plan import PlanRecord
from services.consumer.placement import Member, place
from services.consumer.rebalance import NO_GENERATION

PROPERTY = settings(max_examples=100, deadline=None)  # a busy machine is no error
NAMES = [f"payment-{number}" for number in range(6)]


def plan(replicas: list[str], assignment: dict[int, str] | None) -> PlanRecord:
    return PlanRecord(epoch=1, at_us=0, replicas=tuple(replicas), assignment=assignment, reason="")


def members(*names: str) -> list[Member]:
    return [Member(f"{name}-id", name) for name in names]


def moves(owners: dict[str, list[int]], previous: dict[int, str]) -> int:
    return sum(1 for owner, mine in owners.items() for member_id in mine if previous.get(member_id, owner) != owner)


groups = st.lists(
    st.builds(
        Member,
        member_id=st.uuids().map(str),
        name=st.sampled_from(NAMES),
        incarnation=st.sampled_from(["1", "2", "3"]),
        is_draining=st.booleans(),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda member_id: member_id.member_id,
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
    ids = [member.member_id for member in group]
    previous = data.draw(st.dictionaries(st.sampled_from(partitions or [0]), st.sampled_from([*ids, "gone"])))
    owners = place(the_plan, group, partitions, previous)
    assert sorted(owners) == sorted(ids)
    assert sorted(partition for mine in owners.values() for partition in mine) == partitions


@PROPERTY
@given(plans, groups, partition_lists, st.sets(st.sampled_from(NAMES)), st.data())
def test_only_unowned_partitions_of_absent_replicas_wait(the_plan, group, partitions, absent_in_grace, data):
    ids = [member.member_id for member in group]
    previous = data.draw(st.dictionaries(st.sampled_from(partitions or [0]), st.sampled_from([*ids, "gone"])))
    owners = place(the_plan, group, partitions, previous, absent_in_grace)
    unowned = set(partitions) - {partition for mine in owners.values() for partition in mine}
    assignment = (the_plan.assignment if the_plan else None) or {}
    assert unowned == {p for p in partitions if assignment.get(p) in absent_in_grace and previous.get(p) not in ids}


@PROPERTY
@given(plans, groups, partition_lists)
def test_a_repeated_placement_moves_no_partition(the_plan, group, partitions):
    once = place(the_plan, group, partitions, {})
    previous = {partition: owner for owner, mine in once.items() for partition in mine}
    assert place(the_plan, group, partitions, previous) == once


@PROPERTY
@given(plans, groups, partition_lists)
def test_draining_members_own_nothing_while_others_exist(the_plan, group, partitions):
    newest = {
        member_id.name: member_id
        for member_id in sorted(group, key=lambda member_id: (member_id.incarnation, member_id.member_id))
    }
    owners = place(the_plan, group, partitions, {})
    if not all(member.is_draining for member in newest.values()):
        assert not any(owners[member.member_id] for member in group if member.is_draining)


@PROPERTY
@given(groups, partition_lists, st.data())
def test_present_members_own_their_planned_partitions(group, partitions, data):
    group = [replace(member, is_draining=False) for member in group]
    assignment = data.draw(st.fixed_dictionaries({member_id: st.sampled_from(NAMES) for member_id in partitions}))
    by_name = {
        member.name: member
        for member in sorted(group, key=lambda member_id: (member_id.incarnation, member_id.member_id))
    }
    owners = place(plan(NAMES, assignment), group, partitions, {})
    for partition, name in assignment.items():
        if name in by_name:
            assert partition in owners[by_name[name].member_id]


@PROPERTY
@given(st.integers(1, 6), partition_lists, st.data())
def test_counts_are_even_and_moves_minimal_without_an_assignment(count, partitions, data):
    group = members(*NAMES[:count])
    ids = [member.member_id for member in group]
    previous = data.draw(st.fixed_dictionaries({member_id: st.sampled_from(ids) for member_id in partitions}))
    owners = place(None, group, partitions, previous)
    sizes = sorted(len(mine) for mine in owners.values())
    assert sizes[-1] - sizes[0] <= 1
    current = sorted((sum(1 for owner in previous.values() if owner == member_id) for member_id in ids), reverse=True)
    share, remainder = divmod(len(partitions), count)
    unavoidable = sum(max(0, mine - share - (rank < remainder)) for rank, mine in enumerate(current))
    assert moves(owners, previous) == unavoidable


def test_members_keep_their_partitions_if_all_are_draining():
    group = [Member("a", "payment-0", is_draining=True), Member("b", "payment-1", is_draining=True)]
    assert place(plan(NAMES[:2], {0: "payment-0", 1: "payment-1"}), group, [0, 1], {}) == {"a": [0], "b": [1]}


def test_the_later_of_two_processes_with_one_name_owns_the_partitions():
    """By the generation of its first assignment, and by its own clock if that is equal."""
    old = Member("b-old", "payment-0", "0009", first_generation=4)
    group = [old, Member("a-new", "payment-0", "0002", first_generation=NO_GENERATION)]
    assert place(plan(["payment-0"], {0: "payment-0"}), group, [0], {0: "b-old"}) == {"b-old": [], "a-new": [0]}
    group = [Member("b-old", "payment-0", "0001"), Member("a-new", "payment-0", "0002")]
    assert place(plan(["payment-0"], {0: "payment-0"}), group, [0], {0: "b-old"}) == {"b-old": [], "a-new": [0]}
