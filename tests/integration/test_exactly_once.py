"""`guarantee = exactly_once` on a real Kafka: committed readers get the output of each event exactly once."""

import asyncio
from collections import Counter

import pytest
from aiokafka import errors, structs
from aiokafka.protocol.transaction import EndTxnRequest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import NewTopic
from plan_consumers import DEADLINE_S, Playground, running, until

from contracts.rebalance_protocol import Guarantee
from contracts.requests import VersionedRequest
from services.consumer import Event, Options, PlanConsumer
from services.consumer.connections import Client
from services.consumer.outbox import Record
from services.consumer.transaction import TransactionLostError, Transactions

pytestmark = pytest.mark.kafka

PARTITIONS = 3
PRODUCER_FENCED = 90  # aiokafka has no error for it


class Shop:
    """A group whose handler writes each value to one topic, upper case."""

    def __init__(self, kafka: str, name: str) -> None:
        self.ground = Playground(kafka, name, PARTITIONS)
        self.out = f"{name}.out"
        for made in self.ground.admin.create_topics([NewTopic(self.out, 2)]).values():
            made.result(DEADLINE_S)
        self.handled: list[str] = []

    def replica(self, name: str, handle=None, on_error=None, **options) -> PlanConsumer:
        async def shout(event: Event):
            self.handled.append(event.value.decode())
            return await made.send(self.out, event.key, event.value.upper())

        made = PlanConsumer(
            name,
            self.ground.connection,
            self.ground.topics,
            handle or shout,
            on_error=on_error,
            options=Options(guarantee=Guarantee.EXACTLY_ONCE, **options),
        )
        return made

    def put(self, count: int) -> list[str]:
        values = [f"{partition}-{number}" for number in range(count) for partition in range(PARTITIONS)]
        for value in values:
            self.ground.put(int(value[0]), value)
        return values

    def seen(self) -> list[str]:
        """Return the values that a reader of committed records gets."""
        config = {"bootstrap.servers": self.ground.kafka, "group.id": "unused", "isolation.level": "read_committed"}
        reader = Consumer(config | {"enable.partition.eof": True, "auto.offset.reset": "earliest"})
        try:
            reader.assign([TopicPartition(self.out, number, 0) for number in range(2)])
            found, ends = [], 0
            while ends < 2:
                for record in reader.consume(500, 1.0):
                    if record.error() is None:
                        found.append(record.value().decode())
                    else:
                        ends += record.error().code() == KafkaError._PARTITION_EOF
            return found
        finally:
            reader.close()


@pytest.fixture
def shop(kafka: str, namespace: str) -> Shop:
    return Shop(kafka, namespace)


def test_outputs_and_offsets_are_committed_together(shop: Shop) -> None:
    asked = shop.put(20)

    async def story() -> None:
        async with running(shop.replica("one")):
            await until(lambda: len(shop.handled) == len(asked), "all are handled")
            await until(lambda: shop.ground.committed(0) == 20, "committed while it runs")

    asyncio.run(story())
    assert Counter(shop.seen()) == Counter(asked)
    assert [shop.ground.committed(partition) for partition in range(PARTITIONS)] == [20] * PARTITIONS


def test_outputs_of_a_failed_attempt_are_not_visible_and_a_dead_letter_is_committed_with_its_event(shop: Shop) -> None:
    asked = shop.put(10)
    attempts: Counter[str] = Counter()
    letters: list[str] = []

    async def stumble(event: Event) -> object:
        value = event.value.decode()
        attempts[value] += 1
        sent = await made.send(shop.out, event.key, event.value.upper())
        if value.endswith("-3") or (value.endswith("-5") and attempts[value] < 3):
            raise ValueError(value)
        return sent

    async def give_up(event: Event, wrong: Exception) -> None:
        letters.append(event.value.decode())
        await (await made.send(shop.out, event.key, b"letter " + event.value))

    made = shop.replica("one", stumble, on_error=give_up, attempts=3, retry_backoff_s=0.01, retry_backoff_max_s=0.01)

    async def story() -> None:
        async with running(made):
            await until(lambda: len(letters) == PARTITIONS, "three are given up")
            await until(lambda: sum(map(shop.ground.committed, range(PARTITIONS))) == len(asked), "all is committed")

    asyncio.run(story())
    expected = [f"letter {value}" if value.endswith("-3") else value for value in asked]
    assert Counter(shop.seen()) == Counter(expected)


def test_the_first_transaction_needs_no_coordinator_lookup(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    send = Client.send

    async def noted(self: Client, node: int, request: object, *options: object, **named: object) -> object:
        asked.append(type(request).__name__)
        return await send(self, node, request, *options, **named)

    async def story() -> None:
        group = shop.ground.topics.group
        transactions = Transactions({"bootstrap_servers": shop.ground.kafka}, group, "one", "1", timeout_s=6.0)
        await transactions.start()
        monkeypatch.setattr(Client, "send", noted)
        try:
            at = structs.TopicPartition(shop.ground.topics.events, 0)
            await transactions.write([Record(shop.out, b"k", b"v")], {at: structs.OffsetAndMetadata(1, "")}, (-1, ""))
        finally:
            await transactions.stop()

    asyncio.run(story())
    assert "EndTxnRequest" in asked
    assert not {"FindCoordinatorRequest", "InitProducerIdRequest"} & set(asked)


def test_an_offset_that_arrives_late_is_no_part_of_the_next_transaction(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[tuple[int, VersionedRequest]] = []
    answers: list[list[tuple[int, int]]] = []
    send = Client.send

    async def lose_the_first(self: Client, node: int, request: object, **more: object) -> object:
        if isinstance(request, VersionedRequest) and not lost:
            lost.append((node, request))
            raise errors.RequestTimedOutError
        if isinstance(request, EndTxnRequest) and len(answers) < 2:  # after the offsets of its transaction
            late = await send(self, *lost[0], **more)
            answers.append([(partition, code) for _, parts, _ in late.topics for partition, code, _ in parts])
        return await send(self, node, request, **more)

    async def story() -> None:
        group = shop.ground.topics.group
        transactions = Transactions({"bootstrap_servers": shop.ground.kafka}, group, "one", "1", timeout_s=6.0)
        at = structs.TopicPartition(shop.ground.topics.events, 0)
        monkeypatch.setattr(Client, "send", lose_the_first)
        try:
            for offset in (1, 2):
                record = Record(shop.out, b"k", str(offset).encode())
                await transactions.write([record], {at: structs.OffsetAndMetadata(offset, "")}, (-1, ""))
        finally:
            await transactions.stop()

    asyncio.run(story())
    assert shop.seen() == ["1", "2"]
    assert shop.ground.committed(0) == 2
    assert answers[0] == [(0, 0)], "in its own transaction it changes nothing"
    assert answers[1][0][1] in (errors.InvalidProducerEpoch.errno, PRODUCER_FENCED)


def test_a_transaction_that_no_broker_ends_is_discarded_and_never_visible(shop: Shop) -> None:
    async def story() -> None:
        group = shop.ground.topics.group
        transactions = Transactions({"bootstrap_servers": shop.ground.kafka}, group, "one", "1", timeout_s=2.0)
        known, deleted = structs.TopicPartition(shop.ground.topics.events, 0), structs.TopicPartition("deleted", 0)
        record, offset = Record(shop.out, b"k", b"v"), structs.OffsetAndMetadata(1, "")
        try:
            with pytest.raises(TransactionLostError, match="not ended within 2 s"):
                await transactions.write([record], {deleted: offset}, (-1, ""))  # answered: unknown topic, try again
            await transactions.write([record._replace(value=b"next")], {known: offset}, (-1, ""))
        finally:
            await transactions.stop()

    asyncio.run(asyncio.wait_for(story(), DEADLINE_S))
    assert shop.seen() == ["next"]


def test_moved_partitions_are_committed_first_and_visible_once_in_order(shop: Shop) -> None:
    asked = shop.put(200)
    shop.ground.plan({0: "one", 1: "one", 2: "two"})

    async def slowly(event: Event, made: PlanConsumer) -> object:
        shop.handled.append(event.value.decode())
        await asyncio.sleep(0.002)
        return await made.send(shop.out, b"same", event.value)

    replicas = [shop.replica(name, lambda event, name=name: slowly(event, by_name[name])) for name in ("one", "two")]
    by_name = dict(zip(("one", "two"), replicas, strict=True))

    async def story() -> None:
        async with running(*replicas):
            for number in range(8):
                await until(lambda number=number: len(shop.handled) > 60 * (number + 1), "work goes on")
                shop.ground.plan({p: ("one", "two")[(p + number) % 2] for p in range(PARTITIONS)})
            await until(lambda: len(shop.handled) >= len(asked), "all are handled")
            await until(lambda: sum(map(shop.ground.committed, range(PARTITIONS))) == len(asked), "all is committed")

    asyncio.run(story())
    seen = shop.seen()
    assert Counter(seen) == Counter(asked)
    for partition in range(PARTITIONS):
        assert [value for value in seen if value[0] == str(partition)] == [f"{partition}-{n}" for n in range(200)]
    assert len(shop.handled) == len(asked), "nothing was served twice in planned handovers"
