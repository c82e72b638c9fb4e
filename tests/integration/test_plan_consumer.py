"""PlanConsumer as a library, on a real Kafka, as docs/reference/consumer-api.md describes it."""

import asyncio
import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from aiokafka.errors import IllegalGenerationError, RequestTimedOutError
from aiokafka.protocol.commit import OffsetCommitRequest
from confluent_kafka import Consumer
from confluent_kafka.admin import NewTopic
from http_answer import http_answer
from kafka_helpers import read_all, wait_for
from plan_consumers import DEADLINE_S, Playground, running, until
from prometheus_client import CollectorRegistry

from contracts.events import DeadLetter
from contracts.rebalance_protocol import Guarantee
from services.consumer import Event, Options, PlanConsumer, ReplicaError
from services.consumer.interface import Completion
from tailpack.local.ports import free_port

pytestmark = pytest.mark.kafka


@pytest.fixture
def ground(kafka: str, namespace: str) -> Playground:
    return Playground(kafka, namespace, 3)


def new_consumer(ground: Playground, handle=None, replica: str = "one", **more) -> PlanConsumer:
    return PlanConsumer(replica, ground.connection, ground.topics, handle, **more)


def text(event: Event) -> str:
    return (event.value or b"").decode()


def test_batches_contain_consecutive_events_of_one_partition(ground: Playground) -> None:
    batches: list[list[Event]] = []

    async def handle(events) -> None:
        batches.append(list(events))

    async def story() -> None:
        for partition in range(3):
            ground.put(partition, *map(str, range(25)))
        async with running(new_consumer(ground, handle_batch=handle, options=Options(batch_size=10))):
            await until(lambda: sum(map(len, batches)) == 75, "all are handled")

    asyncio.run(story())
    assert max(map(len, batches)) == 10
    for batch in batches:
        assert len({event.partition for event in batch}) == 1
        assert all(after.offset == before.offset + 1 for before, after in pairwise(batch))
    assert all(ground.committed(partition) == 25 for partition in range(3)), "what is done is committed at the stop"


def test_a_commit_that_arrives_late_does_not_set_the_offset_back(ground: Playground) -> None:
    handled: list[int] = []
    unanswered: list[Any] = []

    async def handle(event: Event) -> None:
        handled.append(event.offset)

    async def story() -> None:
        consumer = new_consumer(ground, handle)
        async with running(consumer):
            ground.put(0, "a")
            await until(lambda: handled and ground.committed(0) == 1, "the first is committed")
            client = consumer._clients.consumer._client
            send = client.send

            async def lose(node: Any, request: Any, **more: Any) -> Any:
                if isinstance(request, OffsetCommitRequest) and not unanswered:
                    unanswered.append((node, request))
                    raise RequestTimedOutError
                return await send(node, request, **more)

            client.send = lose
            ground.put(0, "b")
            await until(lambda: unanswered, "a commit is lost on its way")
            ground.put(0, "c")
            await until(lambda: ground.committed(0) == 3, "the next generation commits")
            answer = await send(*unanswered[0])
            assert answer.topics == [(ground.topics.events, [(0, IllegalGenerationError.errno)])]
            assert ground.committed(0) == 3

    asyncio.run(story())
    assert handled == [0, 1, 2]


def test_a_replica_serves_without_the_progress_topic_and_counts_the_lost_reports(ground: Playground) -> None:
    ground.admin.delete_topics([ground.topics.progress])[ground.topics.progress].result(DEADLINE_S)
    handled: list[str] = []

    async def handle(event: Event) -> None:
        handled.append(text(event))

    async def story() -> None:
        consumer = new_consumer(ground, handle)
        async with running(consumer):
            ground.put(0, "a")
            await until(lambda: handled and consumer.health().reports_lost > 1, "it serves, and reports are lost")
            ground.put(0, "b")
            await until(lambda: len(handled) == 2 and ground.committed(0) == 2, "it serves on")
            assert consumer.health().ok
            assert ground.topics.progress in consumer.health().reports_problem

    asyncio.run(story())


def test_an_event_that_always_fails_becomes_a_dead_letter_while_other_partitions_are_served(
    ground: Playground,
) -> None:
    letters = f"{ground.name}.dead"
    ground.admin.create_topics([NewTopic(letters, 1)])[letters].result(60)
    tried: Counter[str] = Counter()
    handled: list[str] = []

    async def handle(event: Event) -> Completion:
        tried[text(event)] += 1
        if text(event) in ("poison", "huge" * 50_000):
            raise ValueError(f"cannot be digested: {text(event)}")
        if text(event) == "flaky" and tried["flaky"] < 3:
            raise OSError("not there yet")
        if text(event) == "bulky":  # above the client's limit: only this event fails
            return await consumer.send(letters, None, b"x" * 2_000_000)
        handled.append(text(event))
        return None

    topics = replace(ground.topics, dead_letters=letters, stage="digestion")
    options = Options(attempts=3, retry_backoff_s=0.2)
    consumer = PlanConsumer("one", ground.connection, topics, handle, options=options)

    async def story() -> None:
        ground.put(0, "poison", "flaky", "bulky", "huge" * 50_000, "last", key="k" * 5000)
        ground.put(1, "b", "c")
        async with running(consumer):
            await until(lambda: "last" in handled, "the partition advances")

    asyncio.run(story())
    assert handled == ["b", "c", "flaky", "last"], "the other partition does not wait for the pauses"
    assert (tried["poison"], tried["flaky"], tried["bulky"]) == (3, 3, 3)
    assert ground.committed(0) == 5
    written = [msgspec.json.decode(record.value(), type=DeadLetter) for record in read_all(ground.kafka, "", letters)]
    assert [(letter.stage, letter.partition, letter.offset) for letter in written] == [
        ("digestion", 0, offset) for offset in (0, 2, 3)
    ]
    for letter, reason in zip(written, ("ValueError: cannot", "TooLarge", "Value"), strict=True):
        assert reason in letter.reasons[0]


def test_a_group_with_another_protocol_ends_the_replica_with_one_line(ground: Playground) -> None:
    other = Consumer({"bootstrap.servers": ground.kafka, "group.id": ground.name})
    other.subscribe([ground.topics.events])
    wait_for(lambda: other.poll(0.1) or other.assignment(), "another program is the group")

    async def handle(event: Event) -> None: ...

    try:
        with pytest.raises(ReplicaError, match="InconsistentGroupProtocol") as ended:
            asyncio.run(asyncio.wait_for(new_consumer(ground, handle).run(asyncio.Event()), 15))
        assert len(str(ended.value).splitlines()) == 1
    finally:
        other.close()


def test_health_and_metrics_are_available_in_the_program_and_over_http(ground: Playground) -> None:
    gate = asyncio.Event()

    async def handle(event: Event) -> None:
        if text(event) == "flaky" and not gate.is_set():
            raise ValueError("not yet")
        if text(event) == "stubborn":
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            await gate.wait()

    port = free_port()

    def page(path: str) -> tuple[int, str]:
        return http_answer(f"http://127.0.0.1:{port}/{path}")

    async def story() -> None:
        options = Options(http_port=port, handler_timeout_s=0.2, retry_backoff_s=0.05, attempts=1000)
        consumer = new_consumer(ground, handle, options=options)
        with pytest.raises(RuntimeError, match="not running"):
            consumer.health()
        registry = CollectorRegistry()
        registry.register(consumer)
        assert registry.get_sample_value("tailpack_consumer_events_total") is None
        labels = {"group": ground.name, "replica": "one"}

        def sample(name: str) -> float:
            return registry.get_sample_value(f"tailpack_consumer_{name}", labels) or 0.0

        ground.put(0, "a", "flaky")
        async with running(consumer):
            await until(lambda: sample("attempts_retried_total") >= 2, "it is tried again")
            assert consumer.health().ok
            assert (sample("events_total"), sample("partitions")) == (1, 3)
            assert (await asyncio.to_thread(page, "healthz"))[0] == 200
            gate.set()
            await until(lambda: sample("events_total") == 2, "all is done")
            gate.clear()
            ground.put(1, "stubborn")
            await until(lambda: not consumer.health().ok, "a handler that ignores its cancellation is reported")
            status, body = await asyncio.to_thread(page, "healthz")
            assert (status, json.loads(body)["ok"]) == (503, False)
            assert "ignores its cancellation" in json.loads(body)["reasons"][0]
            metrics = (await asyncio.to_thread(page, "metrics"))[1]
            assert f'tailpack_consumer_healthy{{group="{ground.name}",replica="one"}} 0.0' in metrics
            gate.set()
            await until(lambda: consumer.health().ok, "it is healthy again")

    asyncio.run(story())


@pytest.mark.parametrize("guarantee", Guarantee)
def test_an_output_above_the_size_limit_fails_its_event(ground: Playground, guarantee: str) -> None:
    """A batch of several small outputs is refused too. The dead letter fits into a topic for small records."""
    out, letters = f"{ground.name}.out", f"{ground.name}.dead.letters"
    made = [NewTopic(name, 1, config={"max.message.bytes": size}) for name, size in ((out, "1500"), (letters, "3000"))]
    for creation in ground.admin.create_topics(made).values():
        creation.result(DEADLINE_S)

    begun: set[int] = set()

    async def copy(event: Event) -> Completion:
        begun.add(event.offset)
        return await consumer.send(out, event.key, event.value or b"")

    topics = replace(ground.topics, dead_letters=letters, stage="copy")
    consumer = PlanConsumer("one", ground.connection, topics, copy, options=Options(attempts=2, guarantee=guarantee))
    fitting = [f"{number:01000d}" for number in range(30)]

    async def story() -> None:
        ground.put(0, *fitting[:15], "x" * 5000, *fitting[15:])
        async with running(consumer):
            await until(lambda: len(begun) == 31, "the partition advances")
            await until(lambda: ground.committed(0) == 31, "all is done")

    asyncio.run(story())
    assert [record.value().decode() for record in read_all(ground.kafka, "", out)] == fitting
    (written,) = [msgspec.json.decode(each.value(), type=DeadLetter) for each in read_all(ground.kafka, "", letters)]
    assert (written.offset, written.payload, written.payload_bytes) == (15, "", 5000)
    assert "5000 bytes" in written.reasons[0]
