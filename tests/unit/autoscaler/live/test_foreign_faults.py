"""Memberships keep their group when rights are missing, answers are lost, or a plan is too long."""

import asyncio
import socket
from concurrent.futures import Future
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import IncompatibleBrokerVersion, KafkaConnectionError
from foreign_group import settings_of

from autoscaler.live.foreign import broker_settings, packed, wire
from autoscaler.live.foreign.coordinator import Coordinator, describe_error
from autoscaler.live.foreign.leader import Leader
from autoscaler.live.foreign.members import Member, Replicas
from autoscaler.live.foreign.membership import View
from autoscaler.live.foreign.planner import Planner
from autoscaler.live.foreign.wire import PLANNER
from contracts.connection import Connection
from contracts.plan import PlanRecord
from contracts.requests import VersionedRequest

CONNECTION, TOPIC, TOPIC_ID = Connection(bootstrap_servers="kafka:9092"), "orders", b"o" * 16
SETTINGS = settings_of(TOPIC, "shop")


class Group:
    """A coordinator with one consumer of KIP-848, which forgets what it gets while `is_deaf`."""

    group, node = "shop", 1
    describe_assigned = Coordinator.describe_assigned

    def __init__(self) -> None:
        self.rack: str | None = None
        self.sent: list[Any] = []
        self.is_deaf, self.epoch = False, 0

    async def count_partitions(self, *_: Any) -> dict[str, int]:
        return {TOPIC: 2}

    async def send(self, kind: Any, *values: Any) -> Any:
        if kind is wire.DESCRIBE_ASSIGNED:
            places = ([(TOPIC_ID, TOPIC, [0, 1], {})],)
            consumer = ("a", None, None, 1, "shop-0", "", [TOPIC], None, places, places)
            carrier = (PLANNER, None, self.rack, 1, PLANNER, "", ["other"], None, ([],), ([],))
            members = [consumer, *([carrier] if self.rack is not None else [])]
            return SimpleNamespace(groups=[(0, None, "shop", "Stable", 1, 1, "planned", members)])
        self.sent.append(values[3:6:2])
        if self.is_deaf:
            raise KafkaConnectionError("lost")
        self.rack, self.epoch = values[3] or self.rack, self.epoch + 1
        return SimpleNamespace(error_code=0, message="", epoch=self.epoch)


@pytest.fixture
def planned() -> Any:
    group, one = Group(), Planner(CONNECTION, SETTINGS)
    one._coordinator = group  # type: ignore[assignment]

    def step(*names: str) -> None:
        record = PlanRecord(epoch=1, at_us=1, replicas=names, assignment=dict(enumerate(names)), reason="test")
        one._given = record, Replicas({"shop-0": "", "shop-1": ""})
        with pytest.raises(KafkaConnectionError) if group.is_deaf else nullcontext():
            one._loop.run_until_complete(one._step())

    step("shop-0", "shop-0")
    yield group, one, step
    one._loop.close()


@pytest.fixture
def leader() -> Any:
    one = Leader(CONNECTION, SETTINGS)
    yield one
    one._loop.close()


def test_a_publication_is_repeated_unchanged_and_many_lost_ones_do_not_fence_the_planner(planned):
    group, one, step = planned
    group.is_deaf, one._owners = True, {}
    for _ in range(12):
        step("shop-0", "shop-0")
    assert len({tuple(map(str, sent)) for sent in group.sent[1:]}) == 1
    for _ in range(12):
        one._owners = {}
        step("shop-0", "shop-0")
    group.is_deaf = False
    step("shop-0", "shop-0")
    assert (one.is_fenced, group.rack) == (False, one._racks[-1])


def test_a_plan_that_is_too_long_keeps_the_membership(planned, monkeypatch):
    group, one, step = planned
    monkeypatch.setattr(packed, "LONGEST", 10)
    one._owners, one._beat_s = {}, 0.0
    step("shop-0", "shop-0")
    assert group.sent[-1] == (None, None)
    assert "too many members or partitions for 4 rack ids" in one.problem


def test_a_removal_is_repeated_until_the_member_is_gone(leader):
    dead, asked = Member("dead"), []

    async def leave(members: Any) -> None:
        asked.append([*members])

    leader._coordinator.leave = leave  # type: ignore[method-assign]
    leader.view = View(members=(dead,))
    asyncio.run(leader._remove_again([dead]))
    asyncio.run(leader._remove_again())
    leader.view = View()
    asyncio.run(leader._remove_again())
    assert asked == [["dead"], ["dead"], []]


def test_a_join_that_a_lost_coordinator_did_not_answer_is_sent_to_the_next_one(leader):
    sent = []

    async def send(kind: Any, *_: Any) -> None:
        sent.append(kind)
        raise KafkaConnectionError("lost")

    leader._coordinator.send = send
    leader.view, leader._generation, leader._member = View(leads=True, generation=3), 3, "tailpack-planner-1"
    leader._due.set()  # a plan
    for _ in range(2):
        with pytest.raises(KafkaConnectionError):
            leader._loop.run_until_complete(leader._serve())
    assert sent == [wire.JOIN, wire.JOIN]


@pytest.mark.parametrize("versions", [{}, {wire.BEAT.API_KEY: (0, 0)}])
def test_a_broker_older_than_4_0_is_named_as_the_reason(versions):
    with pytest.raises(IncompatibleBrokerVersion) as refused:
        VersionedRequest(wire.BEAT, "shop").prepare(versions)
    assert "consumers = assigned needs Kafka 4.0" in describe_error(refused.value)


def test_a_bootstrap_server_that_vanished_leaves_time_for_the_next(monkeypatch):
    monkeypatch.setattr("aiokafka.conn.random.shuffle", lambda _: None)
    with socket.create_server(("127.0.0.1", 0)) as vanished, socket.socket() as refuses:
        refuses.bind(("127.0.0.1", 0))
        addresses = ",".join(f"127.0.0.1:{one.getsockname()[1]}" for one in (vanished, refuses))
        one = Coordinator(Connection(bootstrap_servers=addresses), "shop")
        with pytest.raises(KafkaConnectionError, match="Unable to bootstrap from"):
            asyncio.run(one.connect())


def test_closing_does_not_wait_for_a_host_that_vanished():
    one = Coordinator(CONNECTION, "shop")
    one._client = SimpleNamespace(close=lambda: asyncio.Event().wait())
    asyncio.run(one.close())
    with pytest.raises(KafkaConnectionError, match="not connected"):
        asyncio.run(one.send(wire.LEAVE, []))


def test_brokers_are_asked_one_by_one_for_the_assignor(monkeypatch):
    def describe_configs(asked: Any, **_: Any) -> Any:
        (one,) = asked
        answer: Future[Any] = Future()
        assignors = broker_settings.CLASS if one.name == "1" else "uniform"
        answer.set_result({"group.consumer.assignors": SimpleNamespace(value=assignors)})
        return {one: answer}

    cluster = SimpleNamespace(brokers={1: None, 2: None})
    admin = SimpleNamespace(list_topics=lambda **_: cluster, describe_configs=describe_configs)
    monkeypatch.setattr(broker_settings, "AdminClient", lambda _: admin)
    assert broker_settings.brokers_without_assignor(CONNECTION) == ([2], 2)
