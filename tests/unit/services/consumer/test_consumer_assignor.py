"""What members say of themselves, and what the leader makes of it."""

import msgspec
import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from contracts.plan import PlanRecord
from services.consumer.assignor import Introduction, PlanAssignor, introduced, last_owners

TOPIC = "payments.requested"


class Cluster:
    """As much of aiokafka's cluster metadata as an assignor asks for."""

    def __init__(self, count: int) -> None:
        self.count = count

    def partitions_for_topic(self, topic: str) -> set[int]:
        assert topic == TOPIC
        return set(range(self.count))


def plan(epoch: int, assignment: dict[int, str] | None) -> PlanRecord:
    names = tuple(sorted(set((assignment or {}).values())))
    return PlanRecord(epoch=epoch, at_us=0, replicas=names, assignment=assignment, reason="")


def assignor(name: str, newest: PlanRecord | None) -> PlanAssignor:
    return PlanAssignor(name, f"{name}-incarnation", lambda: newest)


def over_the_wire(one: PlanAssignor) -> ConsumerProtocolMemberMetadata:
    return ConsumerProtocolMemberMetadata.decode(one.metadata({TOPIC}).encode())


def test_the_leader_carries_out_the_plan_it_has_read():
    newest = plan(7, {0: "a", 1: "b", 2: "b"})
    group = {"id-a": over_the_wire(assignor("a", newest)), "id-b": over_the_wire(assignor("b", None))}
    leader, follower = assignor("a", newest), assignor("b", None)

    given = leader.assign(Cluster(3), group)
    follower.on_assignment(ConsumerProtocolMemberAssignment.decode(given["id-b"].encode()))

    assert follower.owned == (1, 2)
    assert follower.epoch == 7, "the assignment tells which plan it was made from"


def test_a_member_introduces_itself_with_what_it_knows_and_owned():
    one = assignor("a", plan(3, {0: "a"}))
    one.owned, one.generation = (0, 4), 9

    said = introduced("id", over_the_wire(one).user_data)

    assert said == Introduction(name="a", incarnation="a-incarnation", epoch=3, owned=(0, 4), generation=9)


@pytest.mark.parametrize("user_data", [None, b"", b"\x00\x01", b"[1]", b'{"name": 5}'])
def test_a_member_of_another_make_goes_by_its_member_id(user_data):
    assert introduced("id-x", user_data) == Introduction(name="id-x")


def test_unknown_fields_of_a_newer_member_are_tolerated():
    assert introduced("id", b'{"name": "a", "draining": true}').name == "a"


def test_an_older_claim_never_beats_a_newer_one():
    zombie = Introduction(name="a", owned=(0, 1), generation=4)
    owner = Introduction(name="b", owned=(1,), generation=6)

    assert last_owners({"id-a": zombie, "id-b": owner}) == {0: "id-a", 1: "id-b"}


def test_without_a_plan_partitions_stay_where_they_are():
    old, new = assignor("a", None), assignor("b", None)
    old.owned, old.generation = (1, 2), 5

    given = old.assign(Cluster(4), {"id-a": over_the_wire(old), "id-b": over_the_wire(new)})

    assert given["id-a"].assignment == [(TOPIC, [1, 2])]
    assert given["id-b"].assignment == [(TOPIC, [0, 3])]


def test_an_assignment_without_origin_counts_as_made_without_a_plan():
    one = assignor("a", None)
    one.epoch = 8

    one.on_assignment(ConsumerProtocolMemberAssignment(0, [(TOPIC, [1])], b"range"))

    assert (one.owned, one.epoch) == ((1,), 0)


def test_after_leaving_nothing_is_claimed():
    one = assignor("a", None)
    one.owned, one.generation, one.epoch = (1,), 4, 2

    one.forget()

    said = msgspec.json.decode(one.metadata({TOPIC}).user_data)
    assert (said["owned"], said["generation"]) == ([], -1)
