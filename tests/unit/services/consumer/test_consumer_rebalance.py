"""A rebalance as the leader decides it: shares, pending revocations, offsets, and properties of any group."""

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.plan import Eviction, PlanRecord
from contracts.progress import RebalanceKind
from services.consumer import rebalance
from services.consumer.rebalance import AssignmentMetadata, HandedOverOffset, MemberMetadata, Share, decide, place

GENERATION = 8
PROPERTY = settings(max_examples=100, deadline=None)  # a busy machine is no error
NAMES = ("a", "b", "c", "d")


def plan(epoch: int, assignment: dict[int, str] | None, *, dead: str = "") -> PlanRecord:
    evictions = (Eviction(replica=dead, member_id=f"{dead}-id", incarnation="1"),) if dead else ()
    replicas = tuple(sorted(set((assignment or {}).values())))
    return PlanRecord(epoch=epoch, at_us=0, replicas=replicas, assignment=assignment, reason="", evictions=evictions)


def member(name: str, *owned: int, epoch: int = 1, generation: int = GENERATION - 1, **more) -> MemberMetadata:
    return MemberMetadata(name=name, owned=owned, epoch=epoch, generation=generation, **more)


def partitions_of(shares: dict[str, Share]) -> dict[str, tuple[int, ...]]:
    return {member_id: share.partitions for member_id, share in shares.items()}


def test_a_moving_partition_is_pending_for_one_rebalance_and_the_others_stay():
    group = {"A": member("a", 0, 1), "B": member("b", 2)}
    shares = decide(plan(2, {0: "a", 1: "b", 2: "b"}), group, [0, 1, 2], GENERATION)
    assert partitions_of(shares) == {"A": (0,), "B": (2,)}
    assert all(share.assignment.rejoin for share in shares.values()), "all members rejoin, so that none waits"


def test_a_handed_over_partition_is_granted_with_its_offset():
    group = {
        "A": member("a", 0, epoch=2, handed_over={1: HandedOverOffset(40, 7)}, follow_up_of=RebalanceKind.PLAN),
        "B": member("b", 2, epoch=2, follow_up_of=RebalanceKind.PLAN),
    }
    shares = decide(plan(2, {0: "a", 1: "b", 2: "b"}), group, [0, 1, 2], GENERATION)
    assert partitions_of(shares) == {"A": (0,), "B": (1, 2)}
    assert shares["B"].assignment == AssignmentMetadata(
        epoch=2, kind=RebalanceKind.PLAN, members=2, moved=1, handed_over={1: HandedOverOffset(40, 7)}
    )
    assert shares["A"].assignment.handed_over == {}, "offsets go only to the new owner"


@pytest.mark.parametrize("generation", [GENERATION - 2, GENERATION, -1])
def test_an_offset_from_another_generation_is_not_passed_on(generation):
    """Another member may have owned the partition in the generation that the old owner missed."""
    group = {"A": member("a", generation=generation, handed_over={0: HandedOverOffset(40, 7)}), "B": member("b")}
    shares = decide(plan(2, {0: "b"}), group, [0], GENERATION)
    assert partitions_of(shares) == {"A": (), "B": (0,)}
    assert shares["B"].assignment.handed_over == {}


def test_follow_ups_that_only_wait_for_a_slow_owner_end_at_the_maximum():
    slow = member("a", 0, epoch=2, follow_up_of=RebalanceKind.PLAN, follow_ups=rebalance.MAX_FOLLOW_UPS)
    group = {"A": slow, "B": member("b")}
    shares = decide(plan(2, {0: "b"}), group, [0], GENERATION)
    assert not shares["A"].assignment.rejoin
    assert partitions_of(shares) == {"A": (), "B": ()}, "still pending revocation"


def test_an_older_claim_never_beats_a_newer_one():
    zombie, owner = member("a", 0, 1, generation=4), member("b", 1, generation=6)
    assert rebalance.last_owners({"A": zombie, "B": owner}) == {0: "A", 1: "B"}


plans = st.none() | st.builds(
    plan, st.integers(1, 5), st.none() | st.dictionaries(st.integers(0, 9), st.sampled_from(NAMES), min_size=1)
)


@dataclass
class Group:
    """A group whose members carry out each assignment at once and completely."""

    metadata: dict[str, MemberMetadata]
    generation: int = GENERATION
    rebalances: int = 0

    def rebalance(self, newest: PlanRecord | None, partitions: list[int]) -> dict[str, Share]:
        shares = decide(newest, self.metadata, partitions, self.generation)
        for member_id, share in shares.items():
            before = self.metadata[member_id]
            self.metadata[member_id] = msgspec.structs.replace(
                before,
                owned=share.partitions,
                handed_over={p: HandedOverOffset(p, 0) for p in before.owned if p not in share.partitions},
                generation=self.generation,
                epoch=share.assignment.epoch,
                follow_up_of=share.assignment.kind if share.assignment.rejoin else None,
                follow_ups=share.assignment.follow_ups,
            )
        self.generation += 1
        self.rebalances += 1
        return shares


@st.composite
def groups(draw, *, is_eager: bool = False) -> dict[str, MemberMetadata]:
    """One to five members, two of which may share a name; no partition is claimed twice."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5))
    owner = draw(st.dictionaries(st.integers(0, 9), st.integers(0, len(names) - 1)))
    return {
        f"m{number}": MemberMetadata(
            name=name,
            owned=tuple(sorted(p for p, its in owner.items() if its == number)),
            epoch=draw(st.integers(0, 5)),
            generation=draw(st.sampled_from([GENERATION - 1, GENERATION - 2])),
            incarnation=str(number),
            is_draining=draw(st.booleans()),
            is_eager=is_eager,
        )
        for number, name in enumerate(names)
    }


@PROPERTY
@given(plans, groups(), st.sets(st.sampled_from(NAMES)))
def test_a_claimed_partition_is_never_granted_to_another_member(newest, group, absent_in_grace):
    shares = decide(newest, group, range(10), GENERATION, absent_in_grace)
    owners = rebalance.last_owners(group)
    granted = [p for share in shares.values() for p in share.partitions]
    assert len(granted) == len(set(granted)), "at most one owner"
    assert set(shares) == set(group), "every member gets an answer"
    assert all(owners.get(p, member_id) == member_id for member_id, share in shares.items() for p in share.partitions)


@PROPERTY
@given(plans, groups(), st.sets(st.sampled_from(NAMES), min_size=1))
def test_no_owner_loses_a_partition_to_an_absent_replica(newest, group, absent_in_grace):
    """Only a partition without an owner waits. An owned one stays, or moves to a present member."""
    shares = decide(newest, group, range(10), GENERATION, absent_in_grace)
    granted = {p for share in shares.values() for p in share.partitions}
    given_up = set(rebalance.last_owners(group)) - granted
    assert not given_up or all(share.assignment.rejoin for share in shares.values())


@PROPERTY
@given(plans, groups())
def test_two_rebalances_carry_out_any_plan_and_a_third_changes_nothing(newest, metadata):
    group = Group(dict(metadata))
    rejoin = True
    while rejoin and group.rebalances < 5:
        rejoin = any(share.assignment.rejoin for share in group.rebalance(newest, list(range(10))).values())
    settled = {member_id: m.owned for member_id, m in group.metadata.items()}
    assert group.rebalances <= 2
    assert {id_: share.partitions for id_, share in group.rebalance(newest, list(range(10))).items()} == settled
    owners = {p: id_ for id_, mine in settled.items() for p in mine}
    assert {id_: tuple(mine) for id_, mine in place(newest, group.metadata, range(10), owners).items()} == settled


@PROPERTY
@given(plans, groups(is_eager=True))
def test_an_eager_group_grants_all_partitions_in_one_rebalance(newest, group):
    shares = decide(newest, group, range(10), GENERATION)
    assert sorted(p for share in shares.values() for p in share.partitions) == list(range(10))
    assert not any(share.assignment.rejoin for share in shares.values())


@PROPERTY
@given(plans, groups(), st.randoms())
def test_the_order_of_members_does_not_change_the_result(newest, group, random):
    shuffled = list(group.items())
    random.shuffle(shuffled)
    assert decide(newest, dict(shuffled), range(10), GENERATION) == decide(newest, group, range(10), GENERATION)
