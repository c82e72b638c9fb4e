"""Groups that a Leader refuses, leaves or takes over, missing rights, and the end of a coordinator."""

import asyncio
import json
import signal
import urllib.error
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from aiokafka.errors import KafkaError, for_code
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int8, Int16, Int32, Schema, TaggedFields
from cluster_helpers import bootstrap, coordinator_of, wait_until_whole
from confluent_kafka import Consumer
from foreign_group import NAMES, ForeignGroup, carried_out, leading, plan, planned, rebalances, settings_of
from kafka_helpers import wait_for
from secured_broker import SecuredKafka, secured_kafka

from autoscaler.live.foreign import wire
from autoscaler.live.foreign.coordinator import Coordinator
from autoscaler.live.foreign.inspection import inspect
from contracts.connection import Connection
from contracts.preflight import PreflightError
from contracts.requests import request_kind
from contracts.topics import ScaledGroup
from tailpack.local import acls

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600), pytest.mark.long]


async def join(connection: Connection, group: str, protocol_type: str, protocol: str) -> None:
    """Join by hand, as the only member, which stays until the end of its session."""
    coordinator, member, code = Coordinator(connection, group), "", 1
    try:
        await coordinator.connect()
        while code:  # the first answer only assigns the id
            offered = [(protocol, b"")]
            joined = await coordinator.send(wire.JOIN, 60_000, 60_000, member, None, protocol_type, offered)
            member, code = joined.member_id, joined.error_code if joined.member_id == member else 1
        await coordinator.send(wire.SYNC, joined.generation_id, member, None, [(member, b"")])
    finally:
        await coordinator.close()


def joined(*where: Any, by: Any = join) -> bool:
    try:
        asyncio.run(by(*where))
    except KafkaError:  # the coordinator is about to be elected
        return False
    return True


async def described(connection: Connection, group: str) -> Any:
    coordinator = Coordinator(connection, group)
    await coordinator.connect()
    found = await coordinator.describe()
    await coordinator.close()
    return found


@pytest.mark.parametrize(
    ("protocol_type", "protocol", "reason"),
    [
        ("connect", "sessioned", "its protocol type is connect, not consumer; Kafka Connect assigns connectors itself"),
        ("consumer", "stream", "its members are Kafka Streams applications"),
    ],
)
def test_groups_of_connect_and_of_streams_are_refused_in_one_line(kafka, namespace, protocol_type, protocol, reason):
    connection = Connection(bootstrap_servers=kafka)
    wait_for(lambda: joined(connection, namespace, protocol_type, protocol), "a coordinator and its answers")
    before = asyncio.run(described(connection, namespace))
    assert len(before[5]) == 1
    with pytest.raises(PreflightError, match=reason) as refused:
        inspect(connection, settings_of(namespace, namespace))
    assert len(str(refused.value).splitlines()) == 1
    assert asyncio.run(described(connection, namespace)) == before


_NAME, _LIST, _TAGS = CompactString("utf-8"), CompactArray(Int8), ("tags", TaggedFields)
_NAMES = CompactArray(_NAME)
STREAMS_BEAT = request_kind(  # the heartbeat of KIP-1071, by which an application joins with its topology
    88, 0,
    Schema(
        ("group", _NAME), ("member", _NAME), ("epoch", Int32), ("endpoint_epoch", Int32), ("instance", _NAME),
        ("rack", _NAME), ("rebalance_ms", Int32), ("has_topology", Int8), ("topology_epoch", Int32),
        ("subtopologies", CompactArray(("id", _NAME), ("a", _NAMES), *((name, _LIST) for name in "bcdef"), _TAGS)),
        ("topology_tags", TaggedFields), ("active", _LIST), ("standby", _LIST), ("warmup", _LIST), ("process", _NAME),
        ("endpoint", Int8), ("client_tags", _LIST), ("offsets", _LIST), ("ends", _LIST), ("shutdown", Boolean), _TAGS,
    ),
    ("error_code", Int16), is_flexible=True,
)  # fmt: skip


async def join_as_streams(connection: Connection, group: str) -> None:
    coordinator = Coordinator(connection, group)
    await coordinator.connect()
    topology = 1, 0, [("0", [group], *([],) * 5, {})], {}
    values = "member-1", 0, 0, None, None, 60_000, *topology, [], [], [], "process-1", -1, [], None, None, False, {}
    answer = await coordinator.send(STREAMS_BEAT, *values)
    await coordinator.close()
    if answer.error_code:
        raise for_code(answer.error_code)


@pytest.mark.parametrize("consumers", ["auto", "led", "assigned", "ours"])
def test_a_group_of_kafka_streams_whose_tasks_the_brokers_assign_is_refused(kafka, namespace, consumers):
    connection = Connection(bootstrap_servers=kafka)
    wait_for(lambda: joined(connection, namespace, by=join_as_streams), "its member")
    with pytest.raises(PreflightError, match=f"group {namespace} is a streams group; plans exist only for"):
        inspect(connection, settings_of(namespace, namespace, consumers=consumers))


def test_an_empty_group_can_be_led_and_is_not_created_for_that(kafka, namespace):
    connection = Connection(bootstrap_servers=kafka)
    consumers, line = inspect(connection, settings_of(namespace, namespace, consumers="auto"))
    assert (consumers, line.partition(";")[0]) == ("led", f"leads group {namespace}, which is empty")
    assert asyncio.run(described(connection, namespace))[2] == "Dead"


def test_a_member_of_kip_848_ends_the_lead_in_one_line_and_the_group_goes_on(kafka, namespace, tmp_path):
    with ForeignGroup(kafka, namespace, tmp_path / "group") as group, leading(group) as leader:
        group.start(*NAMES[:2])
        wait_for(lambda: len(leader.view.members) == 2, "both members")
        group.load()
        assert carried_out(leader, group, plan(1, dict.fromkeys(range(group.partitions), NAMES[0])))
        group.assignor = "consumer"
        group.start(NAMES[2])
        wait_for(lambda: "cannot be led: brokers assign its partitions" in leader.problem, "why it leads no more")
        assert len(leader.problem.splitlines()) == 1
        wait_for(lambda: NAMES[2] in group.owners().values(), "partitions of the new member")
        for consumers in ("led", "auto"):
            with pytest.raises(PreflightError, match=r"KIP-848|install it"):
                inspect(Connection(bootstrap_servers=kafka), settings_of(group.topic, group.name, consumers=consumers))
        group.served()
        assert group.events_after_revocation() == 0


def test_a_standby_takes_over_without_a_rebalance_and_the_first_is_fenced(kafka, namespace, tmp_path):
    with ForeignGroup(kafka, namespace, tmp_path / "group") as group, leading(group) as first:
        group.start(*NAMES[:2])
        wait_for(lambda: len(first.view.members) == 2, "both members")
        group.load()
        wanted = plan(1, {number: NAMES[number % 2] for number in range(group.partitions)})
        assert carried_out(first, group, wanted)
        before = rebalances(group)
        with leading(group) as second:
            wait_for(lambda: first.is_fenced, "the end of the first")
            wait_for(lambda: second.view.leads, "the leadership of the second")
            assert (rebalances(group), group.owners()) == (before, wanted.assignment)
            assert carried_out(second, group, plan(2, dict.fromkeys(range(group.partitions), NAMES[1])))
        group.served()
        assert group.events_after_revocation() == 0


def test_consumers_and_autoscalers_with_another_assignor_are_refused_and_disturb_nobody(kafka, namespace, tmp_path):
    with ForeignGroup(kafka, namespace, tmp_path / "group") as group, ExitStack() as stack:
        group.start(*NAMES[:2])
        wait_for(lambda: len(set(group.owners().values())) == 2, "both own partitions")
        before = rebalances(group)
        other = stack.enter_context(leading(group, led_protocols=("sticky",)))
        wait_for(lambda: "another assignor than those in led_protocols" in other.problem, "why it cannot join")
        strategy = {"partition.assignment.strategy": "cooperative-sticky"}
        stranger = Consumer({"bootstrap.servers": kafka, "group.id": group.name} | strategy)
        stack.callback(stranger.close)
        stranger.subscribe([group.topic])
        wait_for(lambda: (message := stranger.poll(0.1)) and message.error(), "the broker's refusal")
        assert rebalances(group) == before


def test_members_that_belong_to_no_replica_are_listed_and_go_on(kafka, namespace, tmp_path):
    group = ForeignGroup(kafka, f"{namespace}-shop", tmp_path / "group", client_id="rdkafka")
    with group, planned(group, namespace, "led") as auto:

        def problem() -> str:
            try:
                return str(auto.get("/healthz").get("problems", {}).get("members", ""))
            except urllib.error.HTTPError as answer:  # no tick yet
                return str(json.loads(answer.read()).get("problems", {}).get("members", ""))
            except OSError:  # the page is not served yet
                return ""

        line = wait_for(problem, "the members of no replica")
        assert "belong to no replica" in line
        assert "set client.id or group.instance.id" in line
        group.load()
        wait_for(group.handled, "served events")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("led"), prefix="other-") as kafka:
        yield kafka


def test_missing_rights_are_one_line_and_the_printed_ones_suffice_over_tls(secured: SecuredKafka, tmp_path: Path):
    secured.add_user("leader")
    login, plain = str(secured.client_properties(user="leader")), Connection(bootstrap_servers=secured.plain)
    connection = Connection(bootstrap_servers=secured.address, client_properties=login)
    with ForeignGroup(secured.plain, "led-shop", tmp_path / "group") as group:
        scaled = ScaledGroup(topic=group.topic, group=group.name)
        group.start(NAMES[0])
        wait_for(group.owners, "its partitions")
        with pytest.raises(PreflightError, match="no right to join it; allow READ on the group") as refused:
            inspect(connection, settings_of(group.topic, group.name))
        assert len(str(refused.value).splitlines()) == 1
        acls.create(plain, {"leader": acls.of_group("led", scaled)["autoscaler"]}, {})
        with leading(group, connection=connection) as leader:
            wait_for(lambda: "allow READ on the group" in leader.problem, "the right that is missing")
            acls.create(plain, {"leader": acls.of_group("led", scaled, consumers="led")["autoscaler"]}, {})
            wait_for(lambda: leader.view.seen_s and not leader.view.leads, "its membership")
            group.stop(NAMES[0])
            wait_for(lambda: leader.view.leads, "the leadership")
            group.start(*NAMES)
            wait_for(lambda: len(leader.view.members) == len(NAMES), "all members")
            wanted = {number: NAMES[number % 3] for number in range(group.partitions)}
            assert carried_out(leader, group, plan(1, wanted))


def test_the_next_coordinator_keeps_the_plan_and_follows_further_ones(cluster, namespace, tmp_path):
    group = ForeignGroup(bootstrap(cluster), namespace, tmp_path / "group")
    with group, leading(group, session_s=30) as leader:
        wait_for(lambda: leader.view.leads, "the leadership: the first member leads")
        group.start(*NAMES)
        wait_for(lambda: len(leader.view.members) == len(NAMES), "all members")
        group.load()
        wanted = {number: NAMES[number % 3] for number in range(group.partitions)}
        assert carried_out(leader, group, plan(1, wanted))
        wait_until_whole(cluster)
        cluster.kill(coordinator_of(cluster, group.name))
        moved = {number: NAMES[(number + 1) % 3] for number in range(group.partitions)}
        assert carried_out(leader, group, plan(2, moved), deadline_s=200)
        cluster.start()
        assert group.served()
        assert group.events_after_revocation() == 0


def test_a_leader_whose_session_ended_with_its_coordinator_leads_again(cluster, namespace, tmp_path):
    group = ForeignGroup(bootstrap(cluster), f"{namespace}-shop", tmp_path / "group")
    with group, planned(group, namespace, "led") as auto:
        auto.wait_for_plan(1, deadline_s=120)
        wait_for(lambda: group.owners(auto.pids()) == auto.plans()[-1].assignment, "owners by the plan")
        group.load()
        wait_until_whole(cluster)
        auto.signal(signal.SIGSTOP)
        cluster.kill(coordinator_of(cluster, group.name))
        ranges = {number: NAMES[2 * number // group.partitions] for number in range(group.partitions)}
        assert ranges != auto.plans()[-1].assignment
        wait_for(lambda: group.owners(auto.pids()) == ranges, "owners by their own assignor", deadline_s=120)
        auto.signal(signal.SIGCONT)
        wait_for(lambda: group.owners(auto.pids()) == auto.plans()[-1].assignment, "the plan again", deadline_s=120)
        cluster.start()
        assert group.served()
        assert group.events_after_revocation() == 0
        auto.signal(signal.SIGTERM)
        assert f"taking over group {group.name}" in auto.ended()[1]
