"""docs/tutorials/own-consumer.md, block by block, on a real Kafka: an existing consumer becomes a scaled one."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kafka_helpers import admin, wait_for
from own_service import PARTITIONS, Reader

from autoscaler.live.launchers.processes import read_pid_files
from tailpack.local.broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(400)]

BEFORE = 40
"""Names that the plain consumers greet."""


def greeted(folder: Path) -> Counter[str]:
    logs = (folder / "state" / "logs").glob("greeter-*.log")
    return Counter(line for log in logs for line in log.read_text().splitlines() if line.startswith("hello "))


@pytest.fixture
def reader(private_broker: Broker, tmp_path: Path) -> Iterator[Reader]:
    follows = Reader(tmp_path, private_broker.address())  # on a shared one others have the names of the documentation
    yield follows
    follows.close()


def test_the_tutorial_turns_an_existing_consumer_into_a_scaled_one(reader: Reader) -> None:
    # the starting point: a topic with events, and a group of plain clients
    kafka = reader.kafka
    client = admin(kafka)
    client.create_topics([NewTopic("names", PARTITIONS)])["names"].result(60)
    producer = Producer({"bootstrap.servers": kafka})
    for number in range(BEFORE):
        producer.produce("names", f"before-{number}", partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    missing = reader.type(reader.autoscale)
    assert (missing.returncode, missing.stderr.count("\n")) == (4, 1), missing.stderr
    assert "create it with tailpack topics create" in missing.stderr

    created = reader.type(reader.create)
    assert created.returncode == 0, created.stderr
    assert "kafka-acls --add --allow-principal User:replica --topic names --operation Read" in created.stdout

    old = reader.start("python before.py")
    assert old.stdout is not None
    before = Counter(old.stdout.readline().strip() for _ in range(BEFORE))
    refused = reader.type(reader.autoscale)
    assert (refused.returncode, refused.stderr.count("\n")) == (4, 1), refused.stderr
    assert "group greeters cannot be scaled: its 1 members (assignor " in refused.stderr
    assert not list((reader.folder / "state").rglob("*.log")), "nothing was started"
    old.send_signal(signal.SIGINT)
    assert old.communicate(timeout=60)

    scaled = reader.start(reader.autoscale)
    most = reader.scaled(scaled)
    assert all(name.startswith("greeter-") for name in most)
    for look in reader.looks:
        seen = reader.type(look)
        assert json.loads(seen.stdout), seen.stderr
    wait_for(lambda: len(reader.plan()) == 1, "one replica again", deadline_s=120)
    after = greeted(reader.folder)
    assert {f"hello name-{number}" for number in range(5000)} <= after.keys(), "nobody was left out"
    assert max((before + after).values()) == 1, "and nobody was greeted twice"

    scaled.send_signal(signal.SIGINT)
    assert scaled.wait(timeout=60) == 0, scaled.communicate()
    assert not [name for name, _, process in read_pid_files(reader.folder / "state") if process is not None]
