"""Three brokers: each event has three copies, one node may die, and the folder stores the number of nodes."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.metadata import MetadataRequest
from cluster_helpers import bootstrap, wait_until_whole
from confluent_kafka import Consumer
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType
from kafka_helpers import DEADLINE_S, admin, create_topics, produce, read_all, wait_for

from autoscaler.live.loads import LoadReader
from autoscaler.live.offsets import OffsetReader
from autoscaler.model import PartitionLoad
from autoscaler.ports import NotReadyError
from contracts.connection import Connection
from contracts.topics import Group, Topic, qualified
from services.consumer.connections import Client
from tailpack.local.broker import Broker

pytestmark = pytest.mark.kafka


def minimum_in_sync(kafka: str, topic: str) -> str:
    client = admin(kafka)  # kept: its answers are lost with it
    (answer,) = client.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return str(answer.result(60)["min.insync.replicas"].value)


def test_every_topic_has_three_replicas_and_requires_two_in_sync(cluster: Broker, namespace: str) -> None:
    kafka = bootstrap(cluster)
    create_topics(kafka, namespace, 6)
    produce(kafka, namespace, Topic.JOURNAL, [b"one"])
    read_all(kafka, namespace, Topic.JOURNAL)

    topics = admin(kafka).list_topics(timeout=60).topics
    copies = {(name, len(each.replicas)) for name, topic in topics.items() for each in topic.partitions.values()}
    assert copies == {(name, 3) for name in topics}
    assert {minimum_in_sync(kafka, name) for name in topics} == {"2"}


def test_an_offset_is_found_after_leadership_has_moved_to_another_broker(cluster: Broker, namespace: str) -> None:
    kafka = bootstrap(cluster)
    create_topics(kafka, namespace, 1)
    produce(kafka, namespace, Topic.PAYMENTS_REQUESTED, [b"one"])
    at = TopicPartition(qualified(namespace, Topic.PAYMENTS_REQUESTED), 0)

    async def first_value() -> bytes | None:
        consumer = AIOKafkaConsumer(bootstrap_servers=kafka, auto_offset_reset="earliest")
        Client.adopt(consumer._client)
        await consumer.start()
        try:
            await consumer._client._wait_on_metadata(at.topic)
            brokers = consumer._client.cluster
            led = brokers._partitions[at.topic]
            led[0] = led[0]._replace(leader=led[0].leader % 3 + 1)
            consumer.assign([at])
            return (await asyncio.wait_for(consumer.getone(), DEADLINE_S)).value
        finally:
            await consumer.stop()

    assert asyncio.run(first_value()) == b"one"


def test_a_connection_is_replaced_before_its_end_was_read(cluster: Broker) -> None:
    async def replace() -> bool:
        client = AIOKafkaClient(bootstrap_servers=bootstrap(cluster))
        Client.adopt(client)
        await client.bootstrap()
        try:
            node = client.get_random_node()
            broken = await client._get_conn(node)
            broken._writer.transport.abort()
            assert broken.connected(), "aiokafka reads the end later"
            request = MetadataRequest([], allow_auto_topic_creation=False)
            return bool((await client.send(node, request)).brokers)
        finally:
            await client.close()

    assert uvloop.run(replace())


def test_with_one_dead_node_nothing_is_lost_and_writes_continue(cluster: Broker, namespace: str) -> None:
    kafka = bootstrap(cluster)
    create_topics(kafka, namespace, 3)
    wait_until_whole(cluster)
    produce(kafka, namespace, Topic.PAYMENTS_REQUESTED, [b"before-%d" % number for number in range(30)])

    cluster.kill(1)
    try:
        assert bootstrap(cluster) == kafka, "clients keep all addresses"
        produce(kafka, namespace, Topic.PAYMENTS_REQUESTED, [b"after-%d" % number for number in range(30)])

        def found() -> list[bytes]:  # a new leader shows the newest events once its followers have said they have them
            return [record.value() for record in read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED)]

        wait_for(lambda: len(found()) >= 60, "all events are there")
        assert len(set(found())) == len(found()) == 60
    finally:
        cluster.start()
    wait_until_whole(cluster)


def test_an_unavailable_partition_does_not_hide_the_others(cluster: Broker, namespace: str) -> None:
    connection = Connection(bootstrap_servers=bootstrap(cluster), namespace=namespace)
    topic, group = qualified(namespace, Topic.PAYMENTS_REQUESTED), qualified(namespace, Group.PAYMENT)
    client = admin(connection.bootstrap_servers)
    for made in client.create_topics(
        [NewTopic(topic, 3, replica_assignment=[[1], [2], [3]], config={"min.insync.replicas": "1"})]
    ).values():
        made.result(60)
    offsets = OffsetReader(lambda _: Consumer(connection.librdkafka() | {"group.id": group}), topic=topic, partitions=3)

    def ends() -> list[int | None]:
        try:
            return [one.end for one in offsets.read()[1]]
        except NotReadyError:
            return []

    for partition in range(3):
        produce(connection.bootstrap_servers, namespace, Topic.PAYMENTS_REQUESTED, [b"{}"] * 5, partition=partition)
    wait_for(lambda: ends() == [5, 5, 5], "all three")
    cluster.kill(2)
    try:
        wait_for(lambda: ends() == [5, None, 5], "the two that are there")
        loads = LoadReader(offsets)
        wait_for(lambda: any(load.age_s for load in observed(loads)), "an observation with its part that is unknown")
    finally:
        cluster.start()
    wait_for(lambda: ends() == [5, 5, 5], "all three again")
    offsets.close()


def observed(loads: LoadReader) -> tuple[PartitionLoad, ...]:
    try:
        return loads.read()[1]
    except NotReadyError:
        return ()


def tailpack_kafka(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tailpack", "kafka", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_kafka_commands_handle_three_nodes_as_one_cluster(tmp_path: Path, namespace: str) -> None:
    where = ("--folder", str(tmp_path))
    cluster = Broker(tmp_path, brokers=3)
    try:
        started = tailpack_kafka("start", "--brokers", "3", *where)
        assert started.returncode == 0, started.stderr
        kafka = bootstrap(cluster)
        assert started.stdout.split()[0] == kafka
        create_topics(kafka, namespace, 1)
        produce(kafka, namespace, Topic.JOURNAL, [b"kept"])
        wait_until_whole(cluster)

        status = tailpack_kafka("status", *where)
        assert (status.returncode, [line.split()[:2] for line in status.stdout.splitlines()]) == (
            0,
            [[address, "up"] for address in kafka.split(",")],
        )
        other = tailpack_kafka("start", "--brokers", "1", *where)
        assert (other.returncode, len(other.stderr.splitlines())) == (2, 1)
        assert f"{tmp_path} holds a Kafka of 3 brokers, not 1" in other.stderr

        pids = {node: broker.pid for node, broker in cluster.nodes.items()}
        os.kill(pids[2] or 0, signal.SIGKILL)
        status = tailpack_kafka("status", *where)
        assert status.returncode == 3
        assert [line.split()[1] for line in status.stdout.splitlines()] == ["up", "down", "up"]
        assert tailpack_kafka("start", *where).returncode == 0, "starts what is missing"
        again = {node: broker.pid for node, broker in cluster.nodes.items()}
        assert (again[1], again[3]) == (pids[1], pids[3])
        assert again[2] not in {None, pids[2]}

        assert tailpack_kafka("stop", *where).returncode == 0
        assert [broker.pid for broker in cluster.nodes.values()] == [None, None, None]
        assert tailpack_kafka("status", *where).returncode == 3
        assert tailpack_kafka("start", *where).stdout.split()[0] == kafka, "the folder remembers three, and their ports"
        assert [record.value() for record in read_all(kafka, namespace, Topic.JOURNAL)] == [b"kept"]
    finally:
        for node in cluster.nodes:
            cluster.kill(node)
