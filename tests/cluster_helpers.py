"""What tests on a cluster of three nodes share."""

from confluent_kafka import KafkaException
from kafka_helpers import admin, wait_for

from tailpack.local.broker import Broker


def bootstrap(cluster: Broker) -> str:
    """Addresses of all nodes, for clients."""
    address = cluster.address()
    assert address, "the cluster runs"
    return address


def wait_until_whole(cluster: Broker, *, deadline_s: float = 30.0) -> None:
    """Wait until every node has an up-to-date copy of every partition: one may die without loss."""
    client = admin(bootstrap(cluster))

    def whole() -> bool:
        topics = client.list_topics(timeout=10).topics.values()
        return all(len(each.isrs) == len(cluster.nodes) for topic in topics for each in topic.partitions.values())

    wait_for(whole, "every copy is up to date", deadline_s=deadline_s)


def coordinator_of(cluster: Broker, group: str) -> int:
    """Number of the node that coordinates `group`, as Kafka's own tools are told."""
    client = admin(bootstrap(cluster))

    def found() -> int | None:
        try:
            node = client.describe_consumer_groups([group])[group].result(10).coordinator
        except KafkaException:  # it moves at this moment
            return None
        return node.id if node and node.id in cluster.nodes else None

    return wait_for(found, f"{group} has a coordinator")
