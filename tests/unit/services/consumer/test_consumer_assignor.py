"""The assignor: member metadata, the leader's decision, and the grace of absent replicas."""

from typing import Any

import msgspec
import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from consumer_fakes import TOPIC, HandoverHarness
from extremes import extremes

from contracts.plan import PlanRecord
from contracts.progress import Rebalance, RebalanceKind
from services.consumer.assignor import YIELD_AFTER_S, PlanAssignor, decode_metadata
from services.consumer.rebalance import AssignmentMetadata, HandedOverOffset, MemberMetadata


class Cluster:
    """The part of aiokafka's cluster metadata that an assignor uses."""

    def __init__(self, count: int) -> None:
        self.count = count

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        assert topic == TOPIC
        return set(range(self.count)) or None


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def plan(epoch: int, assignment: dict[int, str] | None, *, grace_s: float = 0.0) -> PlanRecord:
    names = tuple(sorted(set((assignment or {}).values())))
    return PlanRecord(epoch=epoch, at_us=0, replicas=names, assignment=assignment, reason="", grace_s=grace_s)


def assignor(name: str, newest_plan: PlanRecord | None, **keywords: Any) -> PlanAssignor:
    return PlanAssignor(name, f"{name}-incarnation", lambda: newest_plan, **({"is_eager": False} | keywords))


def over_the_wire(member: PlanAssignor) -> ConsumerProtocolMemberMetadata:
    return ConsumerProtocolMemberMetadata.decode(member.metadata({TOPIC}).encode())


def lead(leader: PlanAssignor, partitions: int, *members: PlanAssignor) -> dict[str, tuple[int, ...]]:
    """Run one rebalance, in which member ids are names; return name → partitions."""
    group = {member._replica: over_the_wire(member) for member in members}
    assigned = leader.assign(Cluster(partitions), group)
    shares = {}
    for member in members:
        decoded = ConsumerProtocolMemberAssignment.decode(assigned[member._replica].encode())
        member.on_assignment(decoded)
        shares[member._replica] = tuple(p for _, mine in decoded.assignment for p in mine)
    return shares


def test_the_leader_carries_out_its_newest_plan_and_names_its_epoch():
    leader, follower = assignor("a", plan(7, {0: "a", 1: "b", 2: "b"})), assignor("b", None)
    assert lead(leader, 3, leader, follower) == {"a": (0,), "b": (1, 2)}
    assert follower.last_assignment == AssignmentMetadata(epoch=7, kind=RebalanceKind.MEMBERSHIP, members=2, moved=3)


def test_a_leader_refreshes_its_metadata_if_the_plan_names_unknown_partitions():
    requests: list[str] = []
    leader = assignor("a", plan(7, {0: "a", 3: "a"}))
    leader.on_unknown_partitions = lambda: requests.append("metadata")
    assert lead(leader, 3, leader) == {"a": (0, 1, 2)}
    assert requests == ["metadata"]
    assert lead(leader, 4, leader) == {"a": (0, 1, 2, 3)}
    assert requests == ["metadata"], "it knows all partitions now"


def subscription(*topics: str, **fields: object) -> ConsumerProtocolMemberMetadata:
    return ConsumerProtocolMemberMetadata(0, list(topics), msgspec.json.encode({"name": "stranger"} | fields))


STRANGERS = {
    "another topic": subscription("others"),
    "no topic": subscription(),
    "two topics": subscription(TOPIC, "others"),
    "an impossible generation": subscription(TOPIC, generation=-3, owned=[0, 1]),
    "a huge epoch": subscription(TOPIC, knows=10**400),
    "another type": subscription(TOPIC, owned=1),
    "no metadata": ConsumerProtocolMemberMetadata(0, [TOPIC], None),
    "no JSON": ConsumerProtocolMemberMetadata(0, [TOPIC], b'{"name": "\xe4"}'),
    "no subscription": None,
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_foreign_member_gets_no_partitions_and_is_named_while_the_others_follow_the_plan(stranger):
    leader, other = assignor("a", plan(7, {0: "a", 1: "b"})), assignor("b", None)
    group = {"a": over_the_wire(leader), "b": over_the_wire(other), "x": STRANGERS[stranger]}
    assigned = {name: mine.partitions() for name, mine in leader.assign(Cluster(2), group).items()}
    assert {name: [at.partition for at in mine] for name, mine in assigned.items()} == {"a": [0], "b": [1], "x": []}
    assert list(leader.refused) == ["x"]


def test_a_rebalance_with_every_extreme_metadata_of_a_member_is_decided_and_carried_out():
    offsets = {0: HandedOverOffset(5, 9)}
    member = MemberMetadata(name="x", incarnation="i", owned=(0,), handed_over=offsets)
    leader, other = assignor("a", plan(7, {0: "a", 1: "b"})), assignor("b", None)
    for user_data in extremes(member):
        group = {"a": over_the_wire(leader), "b": over_the_wire(other)}
        assigned = leader.assign(Cluster(2), group | {"x": ConsumerProtocolMemberMetadata(0, [TOPIC], user_data)})
        taken = [at.partition for mine in assigned.values() for at in mine.partitions()]
        assert len(taken) == len(set(taken))
        for follower, name in ((leader, "a"), (other, "b")):
            follower.on_assignment(ConsumerProtocolMemberAssignment.decode(assigned[name].encode()))


async def test_every_extreme_metadata_of_an_assignment_is_carried_out_and_reported():
    offsets = {0: HandedOverOffset(5, 9)}
    metadata = AssignmentMetadata(
        epoch=1, kind=RebalanceKind.PLAN, members=2, moved=1, handed_over=offsets, refused="r"
    )
    for user_data in extremes(metadata):
        member = HandoverHarness()
        member.assignor.on_assignment(ConsumerProtocolMemberAssignment(0, [(TOPIC, [0])], user_data))
        await member.handover.apply_assignment(frozenset({0}), 1)
        (report,) = member.handover.rebalance_reports
        assert msgspec.json.decode(msgspec.json.encode(report), type=Rebalance) == report
        assert isinstance(decode_metadata(over_the_wire(member.assignor), TOPIC), MemberMetadata)


def test_a_leader_that_reads_another_topic_follows_the_plan_for_the_others_and_refuses_itself():
    newest = msgspec.structs.replace(plan(7, {0: "b", 1: "c"}), group="g", topic=TOPIC)
    leader, b, c = assignor("a", newest), assignor("b", newest), assignor("c", newest)
    group = {"a": ConsumerProtocolMemberMetadata.decode(leader.metadata({"others"}).encode())}
    group |= {name: over_the_wire(member) for name, member in (("b", b), ("c", c))}
    assigned = leader.assign(Cluster(2), group)
    assert {name: [at.partition for at in mine.partitions()] for name, mine in assigned.items()} == {
        "a": [], "b": [0], "c": [1],
    }  # fmt: skip
    leader.on_assignment(assigned["a"])
    assert "it reads others" in leader.last_assignment.refused


@pytest.mark.parametrize("user_data", [None, b"", b"range", b'{"epoch": "two"}'])
def test_an_assignment_without_readable_metadata_counts_as_one_without_a_plan(user_data):
    member = assignor("a", None)
    member.last_assignment = AssignmentMetadata(epoch=8, rejoin=True)
    member.on_assignment(ConsumerProtocolMemberAssignment(0, [(TOPIC, [1])], user_data))
    assert member.last_assignment == AssignmentMetadata()


def test_members_of_a_topic_that_the_plan_does_not_name_share_it_under_the_plan_of_that_epoch():
    newest = msgspec.structs.replace(plan(7, {0: "a", 1: "a"}), group="g", topic="others")
    leader, other = assignor("a", newest), assignor("b", newest)
    shares = lead(leader, 4, leader, other)
    assert sorted(map(len, shares.values())) == [2, 2]
    assert other.last_assignment.epoch == 7, "a lower one would make members rejoin"


# Grace


def test_partitions_of_an_absent_replica_wait_for_its_grace_and_then_go_to_others():
    clock = Clock()
    leader = assignor("a", plan(1, {0: "a", 1: "b"}, grace_s=5.0), clock=clock)
    assert lead(leader, 2, leader) == {"a": (0,)}
    assert leader.grace_left_s() == pytest.approx(5.0)
    clock.now_s += 4.0
    assert lead(leader, 2, leader) == {"a": (0,)}
    assert leader.grace_left_s() == pytest.approx(1.0), "counted from the first rebalance without it"
    clock.now_s += 1.0
    assert leader.grace_left_s() == 0.0
    assert lead(leader, 2, leader) == {"a": (0, 1)}


def test_a_replica_that_is_absent_again_gets_its_whole_grace_again():
    clock = Clock()
    newest_plan = plan(1, {0: "a", 1: "b"}, grace_s=5.0)
    leader, absent = assignor("a", newest_plan, clock=clock), assignor("b", newest_plan)
    lead(leader, 2, leader)
    clock.now_s += 4.0
    assert lead(leader, 2, leader, absent)["b"] == (1,)
    assert leader.grace_left_s() == 0.0
    clock.now_s += 4.0
    assert lead(leader, 2, leader) == {"a": (0,)}
    assert leader.grace_left_s() == pytest.approx(5.0)


# Eager


@pytest.mark.parametrize(("epoch", "yields"), [(1, False), (2, True), (10**15, False)])
def test_a_leader_that_cannot_read_a_newer_plan_gives_up_the_lead_unless_it_is_impossible(epoch, yields):
    clock = Clock()
    leader = assignor("a", plan(1, {0: "a", 1: "b"}), clock=clock)
    other = assignor("b", plan(epoch, {0: "b", 1: "a"}))
    lead(leader, 2, leader, other)
    assert not leader.gives_up_lead, "it may still read the plan"
    clock.now_s += YIELD_AFTER_S + 0.1
    lead(leader, 2, leader, other)
    assert leader.gives_up_lead == yields
    assert leader.last_assignment.epoch == 1
