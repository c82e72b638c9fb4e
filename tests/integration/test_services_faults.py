"""Killed services and a killed broker: no event is lost and no effect happens twice."""

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.partitioner import murmur2
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from kafka_helpers import admin, end_offsets, produce, read_all, wait_for
from odd_headers import produce_bomb, produce_odd
from services_stack import Stack, a_stack, order, order_without_id, settled, shipment

from contracts.events import DeadLetter
from contracts.topics import Group, Topic, qualified
from services.common.records import KEY_LIMIT, LETTER_LIMIT
from services.common.stage import MAX_UNCOMMITTED
from tailpack.local.broker import Broker

pytestmark = pytest.mark.kafka


@pytest.fixture
def stack(kafka: str, namespace: str, tmp_path: Path) -> Iterator[Stack]:
    with a_stack(kafka, namespace, tmp_path) as running:
        yield running


@pytest.mark.parametrize("service", ["order", "shipment", "notification"])
def test_a_service_that_is_killed_repeatedly_writes_each_effect_once(stack: Stack, service: str) -> None:
    """Nothing is committed before the kills, so each falls between output and commit."""
    stack.settings["COMMIT_INTERVAL_S"] = "60"
    stack.start(service)
    source, target = {
        "order": (Topic.ORDERS_PLACED, Topic.PAYMENTS_REQUESTED),
        "shipment": (Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED),
        "notification": (Topic.PAYMENTS_SETTLED, Topic.NOTIFICATIONS_SENT),
    }[service]

    def keys() -> list[bytes | None]:
        return [record.key() for record in read_all(stack.kafka, stack.namespace, target)]

    placed = 0
    for _ in range(3):
        names = [f"o-{number}" for number in range(placed, placed + 200)]
        accepted = service == "shipment"
        values = [order(name) if service == "order" else settled(name, accepted=accepted) for name in names]
        produce(stack.kafka, stack.namespace, source, values)
        wait_for(lambda placed=placed: len(keys()) > placed, "some of the effects are written")
        placed += len(names)
        stack.kill(service)
        stack.start(service)
    wait_for(lambda: len(keys()) >= placed, "every effect is written")
    wait_for(lambda: stack.get(service, "/healthz")[1]["duplicates_dropped"] > 0, "repeats are dropped")
    assert len(keys()) == len(set(keys())) == placed


def test_services_continue_after_a_broker_is_killed_and_restarted(
    private_broker: Broker, namespace: str, tmp_path: Path
) -> None:
    kafka = private_broker.address()
    assert kafka is not None
    with a_stack(kafka, namespace, tmp_path) as stack:
        stack.start("order", "shipment", "notification")
        processes = dict(stack.processes)
        before = [f"o-{number}" for number in range(50)]
        produce(kafka, namespace, Topic.ORDERS_PLACED, map(order, before), key=b"k")
        produce(kafka, namespace, Topic.PAYMENTS_SETTLED, [settled(name, accepted=True) for name in before])
        private_broker.kill()
        code, answer = stack.place(order_without_id())
        assert code == 503
        assert "Idempotency-Key" in answer["reasons"][0]
        wait_for(
            lambda: all(stack.get(service, "/healthz")[0] == 503 for service in processes),
            "the services say that they are not well",
        )
        private_broker.start()
        produce(kafka, namespace, Topic.ORDERS_PLACED, [order("o-last")], key=b"k")
        produce(kafka, namespace, Topic.PAYMENTS_SETTLED, [settled("o-last", accepted=True)])

        def keys(topic: Topic) -> list[str]:
            return [(record.key() or b"").decode() for record in read_all(kafka, namespace, topic)]

        for topic in (Topic.PAYMENTS_REQUESTED, Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT):
            wait_for(
                lambda topic=topic: {*before, "o-last"} <= set(keys(topic)), f"{topic} holds all orders", deadline_s=60
            )
            assert len(keys(topic)) == len(set(keys(topic)))
        assert [process.poll() for process in processes.values()] == [None] * 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_after_a_clean_stop_no_event_is_processed_again(stack: Stack, number: int) -> None:
    stack.settings["COMMIT_INTERVAL_S"] = "60"  # so that only the stop itself commits
    stack.start("shipment")

    def ship(*names: str) -> None:
        values = [settled(name, accepted=True) for name in names]
        produce(stack.kafka, stack.namespace, Topic.PAYMENTS_SETTLED, values, key=b"k")
        wait_for(lambda: names[-1].encode() in written(), "the last shipment is scheduled")

    def written() -> list[bytes | None]:
        return [record.key() for record in read_all(stack.kafka, stack.namespace, Topic.SHIPMENTS_SCHEDULED)]

    ship(*(f"o-{index}" for index in range(100)))
    assert stack.stop("shipment", number) == 0
    stack.start("shipment")
    ship("o-last")
    assert stack.get("shipment", "/healthz")[1]["duplicates_dropped"] == 0
    assert len(written()) == 101


def test_a_missing_topic_is_named(kafka: str, tmp_path: Path) -> None:
    environ = {
        "TAILPACK_BOOTSTRAP_SERVERS": kafka,
        "TAILPACK_NAMESPACE": "absent",
        "TAILPACK_DATA_DIR": str(tmp_path),
        "TAILPACK_BROKER_DEADLINE_S": "1",
    }
    command = [sys.executable, "-m", "services.shipment"]
    ended = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, timeout=60, check=False)
    (line,) = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert line.startswith("shipment: topic absent.")


FOREIGN = [b"\xff\xfe", b"{}", b"[" * 30_000, b'{"shipment_id": 7, "v": 1}', b'{"order_id": "\xe4"}', b"null", b""]


@pytest.mark.parametrize(
    ("service", "target"),
    [
        ("order", Topic.ORDERS_STATUS),
        ("shipment", Topic.SHIPMENTS_SCHEDULED),
    ],
)
def test_foreign_records_in_the_topics_of_a_service_are_skipped_and_counted(
    stack: Stack, service: str, target: Topic
) -> None:
    produce(stack.kafka, stack.namespace, target, FOREIGN, key=b"k")
    stack.start(service)
    assert stack.get(service, "/healthz")[1]["passed_over"] == len(FOREIGN)
    assert f"{stack.namespace}.{target}" in (stack.folder / f"{service}.log").read_text()


FUZZ = random.Random(16)


def spoilt(good: bytes) -> bytes:
    """Some bytes of a good record replaced, or cut, or none of it."""
    value = bytearray(good)
    for _ in range(FUZZ.randrange(1, 4)):
        value[FUZZ.randrange(len(value))] = FUZZ.randrange(256)
    return FUZZ.choice([bytes(value), bytes(value[: FUZZ.randrange(len(value))]), FUZZ.randbytes(40)])


@pytest.mark.parametrize(
    ("service", "source", "target"),
    [
        ("order", Topic.ORDERS_PLACED, Topic.PAYMENTS_REQUESTED),
        ("shipment", Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED),
        ("notification", Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT),
    ],
)
def test_no_record_can_crash_a_service(stack: Stack, service: str, source: Topic, target: Topic) -> None:
    """After any invalid input the service runs and accepts the next valid record; its dead letters fit the broker."""
    good = {
        Topic.ORDERS_PLACED: order("o-last"),
        Topic.PAYMENTS_SETTLED: settled("o-last", accepted=True),
        Topic.SHIPMENTS_SCHEDULED: shipment("o-last"),
    }[source]
    huge = "x" * 990_000
    bad = [*FOREIGN, *(spoilt(good) for _ in range(200)), good.replace(b'"o-last"', f'"{huge}"'.encode())]
    produce_odd(stack.kafka, stack.namespace, target, b"not", b"its own")
    stack.start(service)
    process = stack.processes[service]
    produce(stack.kafka, stack.namespace, source, bad, partition=0, headers={"partition": b"\xff", "a": b""})
    produce(stack.kafka, stack.namespace, source, [b"no record"], key=huge.encode(), partition=0)
    produce_bomb(stack.kafka, stack.namespace, source, 0)
    produce_odd(stack.kafka, stack.namespace, source, b"no record", good, b"nor this")
    wait_for(
        lambda: b"o-last" in {record.key() for record in read_all(stack.kafka, stack.namespace, target)},
        "the good record behind them is processed",
    )
    letters = read_all(stack.kafka, stack.namespace, Topic.DEAD_LETTERS)
    assert len(letters) > 100
    assert any(b"max_batch_mb" in letter.value() for letter in letters)
    assert max(len(letter.value() or b"") for letter in letters) <= LETTER_LIMIT
    assert max(len(letter.key() or b"") for letter in letters) == KEY_LIMIT
    assert process.poll() is None
    assert stack.get(service, "/healthz")[0] == 200


def test_dead_letters_fit_the_record_size_limit_of_the_broker(stack: Stack) -> None:
    limit = ConfigEntry("max.message.bytes", "4000", incremental_operation=AlterConfigOpType.SET)
    name = qualified(stack.namespace, Topic.DEAD_LETTERS)
    client = admin(stack.kafka)
    topic = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[limit])
    for done in client.incremental_alter_configs([topic]).values():
        done.result(60)
    stack.start("order")
    produce(stack.kafka, stack.namespace, Topic.ORDERS_PLACED, [b'"' * 9000] * 100 + [order("o-1")], partition=0)
    wait_for(lambda: len(stack.requests()) == 1, "the order behind them is accepted")
    letters = stack.records(Topic.DEAD_LETTERS, DeadLetter)
    assert [letter.payload_bytes for letter in letters] == [9000] * 100


@pytest.mark.long
@pytest.mark.timeout(600)
def test_uncommitted_events_are_not_processed_twice_whatever_their_number(stack: Stack) -> None:
    """12,000 effects in one partition, none of their inputs committed: more than any fixed tail that is read back."""
    stack.settings["COMMIT_INTERVAL_S"] = "3600"
    stack.start("shipment")
    names = [f"o-{number}" for number in range(60_000)]
    of_one = [name for name in names if (murmur2(name.encode()) & 0x7FFFFFFF) % 4 == 0][:12_000]
    for partition in range(3):
        values = [settled(name, accepted=True) for name in of_one[partition::3]]
        produce(stack.kafka, stack.namespace, Topic.PAYMENTS_SETTLED, values, partition=partition)

    def written() -> int:
        return sum(end_offsets(stack.kafka, qualified(stack.namespace, Topic.SHIPMENTS_SCHEDULED)))

    wait_for(lambda: written() == len(of_one), "all are scheduled", deadline_s=250, every_s=1)
    stack.kill("shipment")
    client = admin(stack.kafka)  # kept: its answers are lost with it
    group, topic = qualified(stack.namespace, Group.SHIPMENT), qualified(stack.namespace, Topic.PAYMENTS_SETTLED)
    nothing = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, number, 0) for number in range(3)])

    def forgotten() -> bool:
        """Reset the commits, because Faust commits every 10,000 records regardless of its settings."""
        (done,) = client.alter_consumer_group_offsets([nothing]).values()
        with contextlib.suppress(KafkaException):  # while the group waits for the one that was killed
            return all(one.error is None for one in done.result(60).topic_partitions)
        return False

    wait_for(forgotten, "nothing is committed", every_s=1)
    stack.start("shipment")
    wait_for(
        lambda: stack.get("shipment", "/healthz")[1]["duplicates_dropped"] == len(of_one), "repeats", deadline_s=250
    )
    assert written() == len(of_one)
    more = [settled(f"p-{number}", accepted=True) for number in range(2 * MAX_UNCOMMITTED)]
    produce(stack.kafka, stack.namespace, Topic.PAYMENTS_SETTLED, more, partition=3)
    wait_for(lambda: "uncommitted" in stack.get("shipment", "/healthz")[1]["status"], "it waits, and says so")
    assert written() == len(of_one) + MAX_UNCOMMITTED


def test_an_instance_that_resumes_after_a_takeover_writes_nothing(stack: Stack) -> None:
    stack.settings["COMMIT_INTERVAL_S"] = "60"  # so that everything is repeated
    stack.start("shipment")
    frozen = stack.processes.pop("shipment")

    def written() -> list[bytes | None]:
        return [record.key() for record in read_all(stack.kafka, stack.namespace, Topic.SHIPMENTS_SCHEDULED)]

    try:
        names = [f"o-{number}" for number in range(2000)]
        payments = [settled(name, accepted=True) for name in names]
        produce(stack.kafka, stack.namespace, Topic.PAYMENTS_SETTLED, payments[:1000])
        wait_for(lambda: len(written()) == 1000, "it is in the middle of its work")
        frozen.send_signal(signal.SIGSTOP)
        produce(stack.kafka, stack.namespace, Topic.PAYMENTS_SETTLED, payments[1000:])
        stack.settings["INSTANCE"] = "1"
        stack.start("shipment")
        wait_for(lambda: len(set(written())) == len(names), "the other copy has done the rest")
        frozen.send_signal(signal.SIGCONT)
        assert frozen.wait(30) == 1
    finally:
        frozen.kill()
        frozen.wait(10)
    assert "this process was paused" in (stack.folder / "shipment.log").read_text()
    assert len(written()) == len(names)
    assert stack.get("shipment", "/healthz")[0] == 200


def test_a_stage_continues_behind_thousands_of_aborted_records(stack: Stack) -> None:
    stack.start("shipment")
    source, target = (
        qualified(stack.namespace, topic) for topic in (Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED)
    )
    producer = Producer({"bootstrap.servers": stack.kafka, "transactional.id": stack.namespace})
    producer.init_transactions(60)
    commit, abort = producer.commit_transaction, producer.abort_transaction
    for name, count, end in ("o-1", 1, commit), ("o-2", MAX_UNCOMMITTED, abort), ("o-3", 1, commit):
        producer.begin_transaction()
        for _ in range(count):
            producer.produce(source, settled(name, accepted=True), partition=0)
        producer.flush(60)  # an abort discards what was not sent
        end(60)
    wait_for(lambda: sum(end_offsets(stack.kafka, target)) == 2, "both committed payments are shipped")
