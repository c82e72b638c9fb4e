"""The assignor: member metadata, the leader's decision, and the grace of absent replicas."""

from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from consumer_fakes import TOPIC

from contracts.plan import PlanRecord
from contracts.progress import RebalanceKind
from services.consumer.assignor import PLAN_REQUEST_DELAY_S, PlanAssignor, decode_metadata
from services.consumer.rebalance import AssignmentMetadata, MemberMetadata


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


@pytest.mark.parametrize(
    "user_data", [None, b"", b"\x00\x01", b"[1]", b'{"name": 5}', b'{"name": "a", "owned": 1}', b'{"name": "\xe4"}']
)
def test_a_member_without_readable_metadata_is_named_by_its_member_id(user_data):
    assert decode_metadata("id-x", user_data) == MemberMetadata(name="id-x")


@pytest.mark.parametrize("user_data", [None, b"", b"range", b'{"epoch": "two"}'])
def test_an_assignment_without_readable_metadata_counts_as_one_without_a_plan(user_data):
    member = assignor("a", None)
    member.last_assignment = AssignmentMetadata(epoch=8, rejoin=True)
    member.on_assignment(ConsumerProtocolMemberAssignment(0, [(TOPIC, [1])], user_data))
    assert member.last_assignment == AssignmentMetadata()


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


class Reader:
    """The plan that one member has read."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.plan = plan(1, {0: "a", 1: "b"})
        self.assignor = PlanAssignor(name, name, lambda: self.plan, is_eager=False, clock=clock)
        self.assignor.on_plan_passed = self.accept_passed_plan

    def accept_passed_plan(self, passed_on: PlanRecord) -> None:
        self.plan = passed_on


def test_a_leader_that_cannot_read_the_plan_gets_it_from_one_member():
    clock = Clock()
    leader, other, third = (Reader(name, clock) for name in "abc")
    group = [member.assignor for member in (leader, other, third)]
    lead(leader.assignor, 2, *group)
    other.plan = third.plan = plan(2, {0: "b", 1: "a"})
    for _ in range(3):
        lead(leader.assignor, 2, *group)
        assert not any(member.last_assignment.requests_plan for member in group), (
            "the leader may still read the plan itself"
        )
        clock.now_s += PLAN_REQUEST_DELAY_S / 3 + 0.01
    lead(leader.assignor, 2, *group)
    assert [member.last_assignment.requests_plan for member in group] == [False, True, False]
    assert decode_metadata("c", over_the_wire(third.assignor).user_data).plan is None, "plans are large"
    assert lead(leader.assignor, 2, *group) == {"a": (1,), "b": (0,), "c": ()}
    assert {member.last_assignment.epoch for member in group} == {2}
    assert not any(member.last_assignment.requests_plan for member in group)
