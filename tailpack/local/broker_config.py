"""Write the configuration of an embedded Kafka node, and choose its ports."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tailpack.local.ports import LOOPBACK, free_ports

REPLICATION: Final = 3
"""Number of copies of each partition, in a cluster with at least as many nodes."""

PROPERTIES: Final = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{advertised_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
auto.create.topics.enable=false
num.partitions=1
num.network.threads=2
num.io.threads=4
default.replication.factor={replication}
min.insync.replicas={in_sync}
offsets.topic.num.partitions=4
offsets.topic.replication.factor={replication}
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor={replication}
transaction.state.log.min.isr={in_sync}
# abort the open transaction of a dead replica at its timeout, not up to 10 s later
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor={replication}
share.coordinator.state.topic.min.isr={in_sync}
# detect a dead node after 3 s instead of 9: experiments last minutes
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
# all nodes stop together, so no node remains that could take over leadership
controlled.shutdown.enable=false
group.initial.rebalance.delay.ms=0
# equal lower limits for all group types, so that each may detect a change equally fast
group.min.session.timeout.ms=1000
group.consumer.min.heartbeat.interval.ms=100
group.consumer.min.session.timeout.ms=1000
group.share.min.heartbeat.interval.ms=100
group.share.min.session.timeout.ms=1000
log.cleaner.dedupe.buffer.size=4194304
# small index files: on systems with large pages, the first entry of a 10 MB file costs 15 ms
log.index.size.max.bytes=65536
"""

LOG4J: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %-5p %c{1}: %m%n
"""


class NodeState(msgspec.Struct, frozen=True, kw_only=True, rename={"advertised_port": "door", "identity": "who"}):
    """Ports and process of a node. All ports are on 127.0.0.1."""

    port: int
    """Port on which the node listens for clients."""
    advertised_port: int = 0
    """Port that the node advertises, for example that of a proxy; 0: `port`."""
    node: int = 1
    quorum: dict[int, int] = {}
    """Node → port of its controller, for every node of the cluster."""
    pid: int = 0
    """Process id; 0: not started yet."""
    identity: str = ""
    """Identity of the process, because a later process may get the same pid; see contracts.children."""

    @property
    def address(self) -> str:
        """Address for clients, host:port."""
        return f"{LOOPBACK}:{self.advertised_port or self.port}"

    @property
    def heap(self) -> str:
        """Java's heap limit. It is smaller in a cluster, so that three heaps fit into memory."""
        return "-Xmx384m" if len(self.quorum) == 1 else "-Xmx256m"


def assign_ports(before: Sequence[NodeState | None], port: int) -> list[NodeState]:
    """Return the ports for the nodes of a stopped cluster, numbered from 1.

    before: state of each node at its last start. port: port of the first node; the others use the following ports. 0:
    the ports of the last start, or else free ports. Raises TailpackError if a port is taken.
    """
    last = [state.port if state else 0 for state in before]
    wanted = [port + offset for offset in range(len(before))] if port else last
    ports = free_ports([*wanted, *(0 for _ in before)])  # controllers: any free ports
    quorum = dict(enumerate(ports[len(before) :], start=1))
    return [NodeState(node=node, port=port, quorum=quorum) for node, port in zip(quorum, ports, strict=False)]


def write_configuration(folder: Path, state: NodeState, properties: str) -> None:
    """Write server.properties and log4j2.properties. properties: template with the placeholders of PROPERTIES."""
    replication = min(REPLICATION, len(state.quorum))
    text = properties.format(
        node=state.node,
        voters=",".join(f"{node}@{LOOPBACK}:{port}" for node, port in state.quorum.items()),
        port=state.port,
        advertised_port=state.advertised_port or state.port,
        controller_port=state.quorum[state.node],
        logs=folder.resolve() / "data",
        replication=replication,
        in_sync=max(1, replication - 1),
    )
    (folder / "server.properties").write_text(text, encoding="utf-8")
    (folder / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
