"""Run PlanConsumers in the event loop of the test, with the topics of a group."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_helpers import DEADLINE_S

from contracts.connection import Connection
from contracts.plan import Eviction, PlanRecord
from services.consumer import PlanConsumer, Topics

BATCH_BYTES = 16_384
"""Default of Java's producers. A fetch returns whole batches."""


@dataclass
class Playground:
    """The topics of one group, and actions that tests perform on it."""

    kafka: str
    name: str
    partitions: int
    epoch: int = 0

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.kafka})
        self.producer = Producer(
            {"bootstrap.servers": self.kafka, "linger.ms": 0, "enable.idempotence": True, "batch.size": BATCH_BYTES}
        )
        made = [NewTopic(self.topics.events, self.partitions)]
        made += [NewTopic(name, 1) for name in (self.topics.plans, self.topics.progress)]
        for creation in self.admin.create_topics(made).values():
            creation.result(DEADLINE_S)

    @property
    def connection(self) -> Connection:
        return Connection(bootstrap_servers=self.kafka)

    @property
    def topics(self) -> Topics:
        name = self.name
        return Topics(group=name, events=f"{name}.events", plans=f"{name}.plans", progress=f"{name}.progress")

    def put(self, partition: int, *values: str, key: str | None = None) -> None:
        """Produce events."""
        for value in values:
            self.producer.produce(self.topics.events, value.encode(), key=key, partition=partition)
        assert self.producer.flush(DEADLINE_S) == 0

    def plan(self, assignment: dict[int, str], evictions: tuple[Eviction, ...] = ()) -> None:
        """Write the next plan."""
        self.epoch += 1
        record = PlanRecord(
            epoch=self.epoch,
            at_us=time.time_ns() // 1000,
            replicas=tuple(sorted(set(assignment.values()))),
            assignment=assignment,
            reason="test",
            evictions=evictions,
        )
        self.producer.produce(self.topics.plans, msgspec.json.encode(record))
        assert self.producer.flush(DEADLINE_S) == 0

    def committed(self, partition: int) -> int:
        """Return the committed offset; -1001 without one."""
        wanted = ConsumerGroupTopicPartitions(self.name)
        found = self.admin.list_consumer_group_offsets([wanted])[self.name].result(DEADLINE_S)
        return next((each.offset for each in found.topic_partitions if each.partition == partition), -1001)

    def member_ids(self) -> dict[str, str]:
        """Return replica → member id, from Kafka."""
        described = self.admin.describe_consumer_groups([self.name])[self.name].result(DEADLINE_S)
        return {member.client_id: member.member_id for member in described.members}


@asynccontextmanager
async def running(*consumers: PlanConsumer) -> AsyncIterator[None]:
    """Run the consumers during the block, and stop them at its end. The first error is raised at once."""
    stop = asyncio.Event()
    tasks = [asyncio.ensure_future(consumer.run(stop)) for consumer in consumers]
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(asyncio.gather(*tasks), DEADLINE_S)


async def until(condition: Callable[[], object], what: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Run the consumers until the condition holds; fail with `what` at the deadline."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {deadline_s} s: {what}"
        await asyncio.sleep(0.01)
