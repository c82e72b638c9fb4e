"""A re-created or truncated log is not served as a continuation, and no event is left out."""

import asyncio
import functools
import re
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from kafka_helpers import end_offsets, read_all, wait_for
from plan_consumers import DEADLINE_S, Playground, running, until

from contracts.progress import Progress
from services.consumer import Event, OnLogReset, Options, PlanConsumer

pytestmark = pytest.mark.kafka

FAIL, START_OVER = OnLogReset.FAIL, OnLogReset.START_OVER


@pytest.fixture
def ground(kafka: str, namespace: str) -> Playground:
    return Playground(kafka, namespace, 2)


def in_a_loop(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(story)
    def test(**arguments: Any) -> None:
        asyncio.run(story(**arguments))

    return test


class Reader:
    """A consumer that records its events. If it is held back, its handler waits for `gate`."""

    def __init__(self, ground: Playground, policy: OnLogReset, *, held_back: bool = False) -> None:
        self.handled: list[tuple[int, str]] = []
        self.gate = asyncio.Event()
        if not held_back:
            self.gate.set()
        self.consumer = PlanConsumer(
            "one", ground.connection, ground.topics, self.handle, options=Options(on_log_reset=policy)
        )

    async def handle(self, event: Event) -> None:
        await self.gate.wait()
        self.handled.append((event.partition, (event.value or b"").decode()))

    def cut_off(self) -> dict[int, str]:
        return {p: queue.cut_off_reason for p, queue in self.consumer._queues.items() if queue.cut_off_reason}


def recreate(ground: Playground) -> None:
    """Delete and re-create the topic."""
    name = ground.topics.events
    ground.admin.delete_topics([name])[name].result(DEADLINE_S)
    wait_for(lambda: name not in ground.admin.list_topics(timeout=DEADLINE_S).topics, "the topic is deleted")
    ground.admin.create_topics([NewTopic(name, ground.partitions)])[name].result(DEADLINE_S)
    wait_for(lambda: log_ends(ground) == [0] * ground.partitions, "the broker appends to the new logs")


def log_ends(ground: Playground) -> list[int]:
    """Return the partitions' end offsets; empty while the broker does not have them."""
    try:
        return end_offsets(ground.kafka, ground.topics.events)
    except KafkaException:
        return []


def reported(ground: Playground) -> Progress:
    """Return the newest report on the progress topic."""
    newest = read_all(ground.kafka, ground.name, "progress")[-1]  # type: ignore[arg-type]  # not the pipeline's
    return msgspec.json.decode(newest.value() or b"", type=Progress)


def values(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


@pytest.mark.parametrize(("policy", "written"), [(START_OVER, 5), (START_OVER, 60), (FAIL, 60)])
@in_a_loop
async def test_a_re_created_topic_is_served_from_its_start_or_no_more(ground, policy, written):
    """60 events are more than before, so that every offset can still be fetched and only the id differs."""
    reader = Reader(ground, policy)
    ground.put(0, *values("old", 40))
    async with running(reader.consumer):
        await until(lambda: len(reader.handled) == 40, "the old ones are handled")
        await until(lambda: ground.committed(0) == 40, "and committed")
        await until(lambda: reader.consumer._log_watch._id, "the topic's id is known")
        await asyncio.to_thread(recreate, ground)
        ground.put(0, *values("new", written))
        if policy is FAIL:
            await until(lambda: 0 in reader.cut_off(), "it is noticed")
            assert "re-created" in reader.cut_off()[0]
        else:
            wanted = {(0, value) for value in values("new", written)}
            await until(lambda: wanted <= set(reader.handled), "all of the new ones are handled")
            await until(lambda: ground.committed(0) == written, "offsets are those of the new log")
    if policy is FAIL and ground.committed(0) > 0:  # committed before the new log was detected
        successor = Reader(ground, policy)
        async with running(successor.consumer):
            await until(lambda: 0 in successor.cut_off(), "the next owner notices, too")
        assert successor.handled == []


@pytest.mark.parametrize("policy", [START_OVER, FAIL])
@in_a_loop
async def test_a_partition_read_beyond_its_end_starts_over_or_is_reported(ground, policy):
    ground.put(0, *values("a", 10))
    ground.put(1, *values("b", 10))
    offsets = [TopicPartition(ground.topics.events, 0, 500)]
    offsets_of_group = ConsumerGroupTopicPartitions(ground.name, offsets)
    ground.admin.alter_consumer_group_offsets([offsets_of_group])[ground.name].result(DEADLINE_S)
    reader = Reader(ground, policy)
    async with running(reader.consumer):
        if policy is FAIL:
            await until(lambda: 0 in reader.cut_off(), "it is noticed")
            assert "ends at 10, before the next offset 500" in reader.cut_off()[0]
            await until(lambda: reader.cut_off()[0] in "".join(reported(ground).problems), "it is reported")
            await until(lambda: len(reader.handled) == 10, "the other partition is served")
        else:
            await until(lambda: len(reader.handled) == 20, "everything is handled")
    assert ground.committed(0) == (500 if policy is FAIL else 10)


@pytest.mark.parametrize("policy", [START_OVER, FAIL])
@in_a_loop
async def test_events_deleted_before_they_were_served_are_reported(ground, policy, caplog):
    reader = Reader(ground, policy, held_back=True)
    ground.put(0, *(f"{number:04d}{'x' * 1000}" for number in range(1000)))
    async with running(reader.consumer):
        await until(
            lambda: reader.consumer._queues.owned_partitions and len(reader.consumer._queues[0].backlog) >= 200,
            "it is full",
        )
        deleted = ground.admin.delete_records([TopicPartition(ground.topics.events, 0, 900)])
        await asyncio.gather(*(asyncio.wrap_future(each) for each in deleted.values()))
        reader.gate.set()
        gap_message = re.compile(r"begins at 900: \d+ offsets from (\d+) on")
        await until(lambda: gap_message.search(caplog.text), "it is logged")
        gap = int(gap_message.search(caplog.text)[1])
        served = [*range(gap), *(range(900, 1000) if policy is START_OVER else ())]
        await until(lambda: len(reader.handled) >= len(served), "what was fetched before, or is left, is served")
        assert bool(reader.cut_off()) == (policy is FAIL)
    assert [int(value[:4]) for _, value in reader.handled] == served


@pytest.mark.parametrize("aborted", [0, 400])
@in_a_loop
async def test_offsets_that_hold_no_event_are_committed_and_their_deletion_is_no_loss(ground, aborted):
    events, at = ground.topics.events, TopicPartition(ground.topics.events, 0)
    producer = Producer({"bootstrap.servers": ground.kafka, "transactional.id": ground.name})
    producer.init_transactions(DEADLINE_S)

    def write(count: int, end: Callable[[float], None]) -> None:
        producer.begin_transaction()
        for number in range(count):
            producer.produce(events, str(number), partition=0)
        assert producer.flush(DEADLINE_S) == 0  # an abort discards what was not sent
        end(DEADLINE_S)

    for _ in range(2):
        write(10, producer.commit_transaction)
        if aborted:
            write(aborted, producer.abort_transaction)
        log_end = end_offsets(ground.kafka, events)[0]
        reader = Reader(ground, FAIL)
        async with running(reader.consumer):
            await until(lambda handled=reader.handled: len(handled) == 10, "all events are served")
            await until(lambda end=log_end: ground.committed(0) == end, "the end of the log is committed")
            await until(lambda: reported(ground).skipped == {0: 1 + (aborted + 1 if aborted else 0)}, "it is reported")
        assert reader.cut_off() == {}
        ground.admin.delete_records([TopicPartition(events, 0, log_end)])[at].result(DEADLINE_S)


@in_a_loop
async def test_events_of_every_compression_codec_are_served(ground):
    kinds = ("gzip", "lz4", "snappy", "zstd")
    for kind in kinds:
        producer = Producer({"bootstrap.servers": ground.connection.bootstrap_servers, "compression.type": kind})
        producer.produce(ground.topics.events, kind * 300, partition=0)
        assert producer.flush(DEADLINE_S) == 0
    reader = Reader(ground, START_OVER)
    async with running(reader.consumer):
        await until(lambda: len(reader.handled) == len(kinds), "all are served")
    assert [value for _, value in reader.handled] == [kind * 300 for kind in kinds]
