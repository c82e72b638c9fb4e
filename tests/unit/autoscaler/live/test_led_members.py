"""Which member gets which partitions: by plan, by replica, and by what members still own."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.live.foreign.members import Member, Replicas, assign, describe_unknown
from autoscaler.live.foreign.membership import CommitTimes
from autoscaler.live.foreign.wire import Subscription, pack_assignment, read_assignment, read_subscription
from contracts.plan import PlanRecord

TOPIC = "orders"
REPLICAS = Replicas({"shop-0": "10.0.0.1", "shop-1": "10.0.0.2", "shop-10": ""})


def plan(assignment: dict[int, str]) -> PlanRecord:
    return PlanRecord(epoch=1, at_us=1, replicas=tuple({*assignment.values()}), assignment=assignment, reason="test")


def member(id_: str, client: str, *, owned: tuple[int, ...] = (), host: str = "10.0.0.9") -> Member:
    return Member(id_, "", client, host, Subscription(frozenset({TOPIC, "returns"}), {TOPIC: [*owned]}))


def test_a_member_belongs_to_the_replica_of_its_id_or_else_of_its_address() -> None:
    by_client = {"shop-1": "shop-1", "shop-10": "shop-10", "shop-1-7": "shop-1", "rdkafka": ""}
    assert {client: REPLICAS.name_of(member("m", client)) for client in by_client} == by_client
    assert REPLICAS.name_of(member("m", "rdkafka", host="10.0.0.2")) == "shop-1"
    assert REPLICAS.name_of(Member("m", "shop-0", "rdkafka")) == "shop-0"
    unknown = REPLICAS.by_name([member("m", "rdkafka"), member("n", "shop-0")])[""]
    assert describe_unknown(unknown).startswith("1 members belong to no replica and follow no plan (rdkafka at 10.")


@given(st.lists(st.sampled_from(["shop-0", "shop-1", "absent"]), min_size=1, max_size=20))
def test_members_of_planned_replicas_get_every_partition_once_and_in_turn(owners: list[str]) -> None:
    members = [member("a", "shop-0-0"), member("b", "shop-0-1"), member("c", "shop-1-0"), member("d", "stranger")]
    wanted, counts = dict(enumerate(owners)), {TOPIC: len(owners), "returns": len(owners)}
    result = assign(plan(wanted), REPLICAS, members, topic=TOPIC, counts=counts, previous={"a": {TOPIC: [*wanted]}})[0]
    owned = Counter(number for topics in result.values() for number in topics.get(TOPIC, ()))
    named = {"shop-0", "shop-1"} & {*owners}
    assert owned == Counter([*wanted])
    for number, owner in wanted.items():
        ids = {"shop-0": "ab", "shop-1": "c"}.get(owner, "abcd")
        assert any(number in result[id_].get(TOPIC, ()) for id_ in ids)
    assert not named or not result["d"]
    sizes = [len(result[id_].get(TOPIC, ())) for id_ in "ab"]
    assert "absent" in owners or abs(sizes[0] - sizes[1]) <= 1
    assert all(topics.get("returns") == topics.get(TOPIC) for topics in result.values()), "another topic follows"


def test_a_cooperative_member_first_releases_what_another_member_gets() -> None:
    members = [member("a", "shop-0", owned=(0, 1)), member("b", "shop-1")]
    at = {"topic": TOPIC, "counts": {TOPIC: 2, "returns": 0}, "previous": {"a": {TOPIC: [0, 1], "returns": [0]}}}
    wanted = plan({0: "shop-0", 1: "shop-1"})
    result = assign(wanted, REPLICAS, members, is_cooperative=True, **at)  # type: ignore[arg-type]
    assert result == ({"a": {TOPIC: [0], "returns": [0]}, "b": {}}, 1), "a topic that cannot be seen keeps its owners"
    members[0] = member("a", "shop-0", owned=(0,))
    assert assign(wanted, REPLICAS, members, is_cooperative=True, **at)[0]["b"] == {TOPIC: [1]}  # type: ignore[arg-type]


@given(st.binary(max_size=60))
def test_a_damaged_message_of_a_member_is_read_as_far_as_possible(raw):
    assert (read_subscription(raw), read_assignment(raw), read_assignment(pack_assignment({TOPIC: [3]})))[2] == {
        TOPIC: [3]
    }


def test_commits_show_their_interval_and_how_long_a_rebalance_stopped_a_partition() -> None:
    commits, at_s = CommitTimes(), 100.0
    for _ in range(1000):
        at_s += 0.25
        commits.observe(at_s, {0: int(at_s // 5) * 100, 1: 7}, rebalances=False)
    assert 2.3 < commits.age_s < 2.7, "it commits every 5 s"
    for offset, after_s in ((10_000, 0.0), (10_000, 0.3), (10_001, 0.6), (10_001, 1.1)):  # it commits when it stops
        commits.observe(at_s + after_s, {0: offset, 1: 7}, rebalances=True)
    assert commits.pauses(at_s, at_s + 1.0) == [pytest.approx(0.7)], "it stopped after the reading at 0.3"
    commits.observe(at_s + 2, {0: 10_002, 1: 7}, rebalances=False)
    assert commits.pauses(at_s + 1.95, at_s + 1.99) == [pytest.approx(0.04)], "no reading within the rebalance"
