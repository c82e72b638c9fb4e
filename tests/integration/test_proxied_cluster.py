"""A broker's host that vanishes: its partitions get other leaders, and what was acknowledged is still there."""

from pathlib import Path

import pytest
from cluster_helpers import bootstrap, proxied_cluster, wait_until_whole
from confluent_kafka import Producer
from kafka_helpers import admin, create_topics, read_all, wait_for

from contracts.topics import Topic, qualified

pytestmark = pytest.mark.kafka


def test_a_host_that_vanishes_leads_nothing_any_more_and_catches_up_when_it_is_back(
    tmp_path: Path, namespace: str
) -> None:
    with proxied_cluster(tmp_path / "cluster") as cluster:
        kafka = bootstrap(cluster.broker)
        create_topics(kafka, namespace, 3)
        topic = qualified(namespace, Topic.PAYMENTS_REQUESTED)
        client = admin(kafka)
        leads = {
            each.id: each.leader for each in client.list_topics(topic, timeout=60).topics[topic].partitions.values()
        }
        gone = leads[0]
        cluster.vanish(gone)

        def led_by_others() -> bool:
            # Its own client, of the others: a known connection to the vanished one would hold the question up.
            others = [address for node, address in cluster.broker.addresses.items() if node != gone]
            found = admin(",".join(others)).list_topics(topic, timeout=60).topics[topic].partitions.values()
            return gone not in [each.leader for each in found]

        wait_for(led_by_others, "others lead")
        producer = Producer({"bootstrap.servers": kafka, "log_level": 0, "socket.timeout.ms": 2000})
        producer.produce(topic, b"while it was gone", partition=0)
        assert producer.flush(30) == 0
        cluster.come_back(gone)
        wait_until_whole(cluster.broker)
        assert [one.value() for one in read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED)] == [b"while it was gone"]
