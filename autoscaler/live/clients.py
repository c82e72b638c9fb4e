"""Settings that all of the autoscaler's Kafka clients share."""

import logging
from typing import Any

from contracts.connection import Connection
from contracts.topics import qualified

_log = logging.getLogger("autoscaler.librdkafka")
_log.addHandler(logging.NullHandler())
_log.propagate = False


def client(connection: Connection, **settings: Any) -> dict[str, Any]:
    """Return the connection's configuration with `settings` (property names with _ for .).

    librdkafka's own log goes to the logger "autoscaler.librdkafka", silent unless somebody gives it a handler: whatever
    matters arrives as an error of the call that met it, and is told once, in our words.
    """
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return connection.librdkafka() | {"logger": _log} | named


def reader(connection: Connection, **settings: Any) -> dict[str, Any]:
    """Return a configuration for reading single partitions by hand, without joining a group."""
    unused_group = qualified(connection.namespace, "autoscaler.reader")  # librdkafka demands a name
    return client(
        connection,
        group_id=unused_group,
        enable_auto_commit=False,
        enable_partition_eof=True,
        auto_offset_reset="earliest",
        **settings,
    )
