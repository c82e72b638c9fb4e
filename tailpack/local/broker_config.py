"""Configuration of an embedded Kafka node: where it and the other controllers listen, and its server.properties."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tailpack.local.ports import LOOPBACK, free_ports

REPLICATION: Final = 3
"""Copies of each partition, where there are as many nodes."""

PROPERTIES: Final = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{door}
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
# a transaction that a dead replica left open is ended when its time is out, not up to 10 s later
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor={replication}
share.coordinator.state.topic.min.isr={in_sync}
# a dead node is noticed after 3 s, not 9: experiments last minutes
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
# all nodes stop together: no node is left to take a leadership over
controlled.shutdown.enable=false
group.initial.rebalance.delay.ms=0
# each kind of group may be as quick to notice a change as the others
group.min.session.timeout.ms=1000
group.consumer.min.heartbeat.interval.ms=100
group.consumer.min.session.timeout.ms=1000
group.share.min.heartbeat.interval.ms=100
group.share.min.session.timeout.ms=1000
log.cleaner.dedupe.buffer.size=4194304
# a partition's first index entry faults its file in: 15 ms for each of two of 10 MB, where the system's pages are large
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


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """A node's place in its cluster. All ports are on loopback."""

    port: int
    """Where it listens for clients."""
    door: int = 0
    """The port that it advertises, as a proxy's; 0: the one on which it listens."""
    node: int = 1
    quorum: dict[int, int] = {}
    """Every node of the cluster → the port of its controller."""
    pid: int = 0
    """0: not started yet."""
    who: str = ""
    """Identity of its process, see contracts.children: a later process may get the same pid."""

    @property
    def address(self) -> str:
        """Where clients find it, host:port."""
        return f"{LOOPBACK}:{self.door or self.port}"

    @property
    def heap(self) -> str:
        """Java's limit: three small nodes fit where one ample node does not thrice."""
        return "-Xmx384m" if len(self.quorum) == 1 else "-Xmx256m"


def assign_ports(before: Sequence[NodeState | None], port: int) -> list[NodeState]:
    """Return seats for the nodes of a cluster that does not run, numbered from 1.

    before: each node's seat of last time, whose port it keeps. port: wanted for the first node; the others take the
    ports that follow. 0: that of last time, or a free one. Raises TailpackError when a port is taken.
    """
    last = [seat.port if seat else 0 for seat in before]
    wanted = [port + offset for offset in range(len(before))] if port else last
    ports = free_ports([*wanted, *(0 for _ in before)])  # the controllers' ports need not be known outside
    quorum = dict(enumerate(ports[len(before) :], start=1))
    return [NodeState(node=node, port=mine, quorum=quorum) for node, mine in zip(quorum, ports, strict=False)]


def write_configuration(folder: Path, seat: NodeState, properties: str) -> None:
    """Write server.properties and log4j2.properties. `properties`: as PROPERTIES, with the same places."""
    replication = min(REPLICATION, len(seat.quorum))
    text = properties.format(
        node=seat.node,
        voters=",".join(f"{node}@{LOOPBACK}:{port}" for node, port in seat.quorum.items()),
        port=seat.port,
        door=seat.door or seat.port,
        controller_port=seat.quorum[seat.node],
        logs=folder.resolve() / "data",
        replication=replication,
        in_sync=max(1, replication - 1),
    )
    (folder / "server.properties").write_text(text, encoding="utf-8")
    (folder / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
