"""Runtime `cooperative-sticky`: the classic protocol with incremental cooperative rebalancing (KIP-429)."""

from contracts.connection import Connection
from services.comparators import clients
from services.comparators.group_consumer import GroupConsumer
from services.comparators.stop import Stop
from services.payment.settings import ReplicaSettings


def run(settings: ReplicaSettings, connection: Connection, stop: Stop) -> None:
    """Serve as one member of the group until asked to stop."""
    options = clients.group_consumer(connection, settings) | {
        "partition.assignment.strategy": "cooperative-sticky",
        "heartbeat.interval.ms": round(settings.heartbeat_s * 1000),
        "session.timeout.ms": round(settings.session_s * 1000),
    }
    GroupConsumer(settings, connection, options).run(stop)
