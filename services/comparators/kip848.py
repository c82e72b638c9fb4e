"""Runtime `kip848`: the consumer protocol. The broker assigns; heartbeat and session are settings of the group."""

from contracts.connection import Connection
from contracts.delivery import Delivery
from services.comparators import clients
from services.comparators.group_consumer import GroupConsumer
from services.comparators.groups import configure_group
from services.comparators.stop import Stop
from services.payment.settings import ReplicaSettings


def run(settings: ReplicaSettings, connection: Connection, stop: Stop) -> None:
    """Serve as one member of the group until asked to stop."""
    configure_group(connection, Delivery.KIP848, settings.heartbeat_s, settings.session_s)
    options = clients.group_consumer(connection, settings) | {"group.protocol": "consumer"}
    GroupConsumer(settings, connection, options).run(stop)
