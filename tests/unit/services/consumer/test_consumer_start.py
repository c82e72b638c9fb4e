"""The start of a consumer: each problem is reported in one line that says what to do."""

import asyncio
import re
import time

import msgspec
import pytest
from aiokafka.errors import KafkaConnectionError
from consumer_fakes import records

from contracts.connection import Connection
from contracts.plan import PlanRecord, decode_plan, plan_key
from contracts.validation import DECODE_ERRORS
from services.consumer import Event, Options, PlanConsumer, ReplicaError, Topics
from services.consumer.clients import retry_until

NOWHERE = Connection(bootstrap_servers="localhost:1")
TOPICS = Topics(group="g", events="e", plans="p", progress="r")


async def handle(event: Event) -> None:
    """Do nothing."""


async def handle_batch(events: object) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("replica", "keywords", "problem"),
    [
        ("", {"handle": handle}, "replica .. must consist of letters"),
        ("r", {}, "give either handle or handle_batch"),
        ("r", {"handle": handle, "handle_batch": handle_batch}, "give either handle or handle_batch"),
        ("r", {"handle": handle, "options": Options(batch_size=5)}, "batch_size 5 is for handle_batch"),
    ],
)
def test_contradictory_arguments_are_refused(replica, keywords, problem):
    with pytest.raises(ValueError, match=problem):
        PlanConsumer(replica, NOWHERE, TOPICS, **keywords)


async def test_a_paused_partition_starts_nothing_until_it_is_resumed():
    consumer = PlanConsumer("r", NOWHERE, TOPICS, handle)
    consumer._queues.open({3: 0}, epoch=1)
    consumer.pause(3)
    assert consumer._queues[3].is_paused
    assert consumer.partitions == (3,), "it is still served"
    consumer._queues.put(3, records(0, 1), 1)
    assert consumer._queues.take() is None
    consumer.resume(3)
    assert not consumer._queues[3].is_paused
    await asyncio.wait_for(consumer._queues.startable.wait(), 1)


async def test_an_attempt_is_retried_until_the_broker_is_back():
    answers = [KafkaConnectionError("away"), OSError("refused"), None]

    async def attempt() -> str:
        if (answer := answers.pop(0)) is not None:
            raise answer
        return "connected"

    assert await retry_until(attempt, "no Kafka", deadline=time.monotonic() + 10) == "connected"


async def test_an_absent_broker_is_reported_at_the_deadline():
    async def attempt() -> None:
        raise KafkaConnectionError("refused")

    with pytest.raises(ReplicaError, match=r"no Kafka at one:9092 \(KafkaConnectionError: refused\)"):
        await retry_until(attempt, "no Kafka at one:9092", deadline=time.monotonic() + 0.1)


GOOD = PlanRecord(epoch=4, at_us=1, replicas=("a", "b"), assignment={0: "a", 1: "b"}, reason="because")


def changed(**fields: object) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(GOOD, str_keys=True) | fields)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"not JSON", "malformed"),
        (b"{}", "epoch"),
        (changed(epoch=0), "`int` >= 1"),
        (changed(epoch=10**400), "`int` <= "),
        (changed(replicas=["../../etc/a"]), "regex"),
        (changed(replicas=["a\0b"]), "regex"),
        (changed(assignment={"-5": "a"}), ">= 0"),
        (changed(v=2), "version 2"),
        (b'{"v": 1, "epoch": 4, "replicas": ["\xe4"]}', "utf-8"),
        (b'{"x":' * 5000, "recursion"),
    ],
)
def test_an_invalid_plan_is_refused_with_the_reason(value, problem):
    with pytest.raises(DECODE_ERRORS, match=re.escape(problem)):
        decode_plan(value, None, "group")


@pytest.mark.parametrize(
    ("fields", "key", "is_ours"),
    [
        ({}, None, True),
        ({}, b"group", True),
        ({}, b"another", False),
        ({"group": "group", "topic": "events"}, plan_key("group", "events"), True),
        ({"group": "another", "topic": "events"}, plan_key("another", "events"), False),
        ({"group": "another"}, None, False),
    ],
)
def test_a_plan_is_of_the_group_in_its_record_and_key_and_earlier_versions_name_it_in_the_key(fields, key, is_ours):
    assert (decode_plan(changed(**fields), key, "group") is not None) == is_ours


def test_a_plan_whose_key_names_another_topic_is_refused():
    with pytest.raises(DECODE_ERRORS, match="record's key"):
        decode_plan(changed(group="group", topic="events"), plan_key("group", "others"), "group")
