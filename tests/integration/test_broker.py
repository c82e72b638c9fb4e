"""The embedded broker starts, is found by a second command, and keeps its port and data."""

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka_helpers import create_topics, produce, read_all

from contracts.topics import Topic, qualified
from tailpack.local.broker import Broker

pytestmark = pytest.mark.kafka


def test_a_second_start_finds_the_running_broker(private_broker: Broker) -> None:
    pid = private_broker.nodes[1].pid
    assert Broker(private_broker.folder).start() == private_broker.address()
    assert private_broker.nodes[1].pid == pid


def test_events_and_port_remain_after_a_restart(private_broker: Broker, namespace: str) -> None:
    address = private_broker.address()
    assert address
    create_topics(address, namespace, 1)
    produce(address, namespace, Topic.JOURNAL, [b"one", b"two"])
    private_broker.stop()
    assert private_broker.address() is None
    assert private_broker.start() == address
    assert [record.value() for record in read_all(address, namespace, Topic.JOURNAL)] == [b"one", b"two"]


def test_the_plan_topic_is_compacted(kafka: str, namespace: str) -> None:
    create_topics(kafka, namespace, 3)
    create_topics(kafka, namespace, 3)  # a second time changes nothing
    admin = AdminClient({"bootstrap.servers": kafka})
    name = qualified(namespace, Topic.PLANS)
    (future,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)]).values()
    assert future.result(10)["cleanup.policy"].value == "compact"
    topics = admin.list_topics(timeout=10).topics
    assert len(topics[qualified(namespace, Topic.PAYMENTS_REQUESTED)].partitions) == 3
