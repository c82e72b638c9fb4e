"""Fixtures of the tests on a cluster of three nodes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chaos_suite.proxy import BEHIND_PROXIES, Mode, Proxies
from confluent_kafka import KafkaException
from kafka_helpers import admin, wait_for

from tailpack.local.broker import Broker


class ProxiedCluster:
    """Three nodes behind proxies. A node's host can disappear without closing connections, and return."""

    def __init__(self, folder: Path) -> None:
        self.proxies = Proxies()
        self.broker = Broker(folder, brokers=3, properties=BEHIND_PROXIES, advertised_port=self.proxies.advertised_port)

    def vanish(self, node: int) -> None:
        """Drop all traffic from and to the node's host, without closing connections."""
        self.switch(node, Mode.DROP)
        if process := self.broker.nodes[node].process():
            process.suspend()

    def come_back(self, node: int) -> None:
        """Connect the host again. It gets all traffic that was on its way."""
        if process := self.broker.nodes[node].process():
            process.resume()
        self.switch(node, Mode.OPEN)

    def switch(self, node: int, mode: Mode) -> None:
        """Set how the proxy treats traffic between clients and this node; other nodes are not affected."""
        state = self.broker.nodes[node].state
        assert state, "it was started"
        self.proxies.switch(state.port, mode)


@contextmanager
def proxied_cluster(folder: Path) -> Iterator[ProxiedCluster]:
    """Start the cluster. At the end all of its processes and files are removed."""
    cluster = ProxiedCluster(folder)
    try:
        cluster.broker.start()
        yield cluster
    finally:
        for node in cluster.broker.nodes:
            cluster.broker.kill(node)
        cluster.proxies.close()


def bootstrap(cluster: Broker) -> str:
    """Addresses of all nodes, for clients."""
    address = cluster.address()
    assert address, "the cluster runs"
    return address


def wait_until_whole(cluster: Broker, *, deadline_s: float = 30.0) -> None:
    """Wait until every copy of every partition is up to date, so that a node may die without loss."""
    client = admin(bootstrap(cluster))

    def whole() -> bool:
        topics = client.list_topics(timeout=60).topics.values()
        return all(len(each.isrs) == len(each.replicas) for topic in topics for each in topic.partitions.values())

    wait_for(whole, "every copy is up to date", deadline_s=deadline_s)


def coordinator_of(cluster: Broker, group: str) -> int:
    """Return the number of the node that coordinates `group`, as Kafka reports it."""

    def found() -> int | None:
        client = admin(bootstrap(cluster))  # an older one may ask the former coordinator for ever
        with suppress(KafkaException):  # it moves at this moment
            node = client.describe_consumer_groups([group], request_timeout=10)[group].result(60).coordinator
            return node.id if node and node.id in cluster.nodes else None
        return None

    return wait_for(found, f"{group} has a coordinator", every_s=0.5)
