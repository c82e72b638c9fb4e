"""Settings that all Kafka clients of an experiment share."""

import logging
from typing import Any

from contracts.connection import Connection
from contracts.topics import qualified

_log = logging.getLogger("tailpack.labs.librdkafka")
_log.addHandler(logging.NullHandler())
_log.propagate = False
"""Whatever matters arrives as an error of the call that met it."""


def client(connection: Connection, **settings: Any) -> dict[str, Any]:
    """Return the connection's configuration with `settings` (property names with _ for .), silent."""
    return (
        connection.librdkafka() | {"logger": _log} | {name.replace("_", "."): value for name, value in settings.items()}
    )


def producer(connection: Connection) -> dict[str, Any]:
    """Return the configuration of a producer that sends at once and never twice."""
    return client(connection, linger_ms=0, enable_idempotence=True)


def reader(connection: Connection, **settings: Any) -> dict[str, Any]:
    """Return the configuration of a consumer that reads partitions by hand, without joining a group."""
    return client(connection, group_id=qualified(connection.namespace, "lab"), enable_auto_commit=False, **settings)
