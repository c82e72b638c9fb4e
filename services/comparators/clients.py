"""librdkafka's settings, as one chooses them for low latency. Lengths of time are milliseconds, as the names say."""

from typing import Any, Final

from contracts.connection import Connection
from contracts.topics import AUTO_OFFSET_RESET, Group, qualified
from services.payment.settings import ReplicaSettings

FETCH_WAIT_MS: Final = 50
"""As in `services.consumer`: a fetch under way at a handover delays the new owner's first one this long."""
QUEUED_MESSAGES: Final = 500
"""2.5 s of work at 5 ms. The default, 100,000, makes a replica fetch events that it gives away unread."""
FETCH_BACKOFF_MS: Final = 10
"""Pause before a partition is fetched again once the queue is full; the default, 1000, empties so short a queue."""
RETRY_BACKOFF_MS: Final = 20
POLL_INTERVAL_MS: Final = 24 * 3600 * 1000
"""A slow event must not cost the membership; heartbeats tell whether the replica lives."""
WAKE_MS: Final = 100
"""librdkafka's threads sleep up to a second where nothing wakes them: after an incremental rebalance partitions that
did not even move are not fetched for so long (0.9 s measured), heartbeats of 0.1 s are late, and a member that has to
join again sits still. A metadata refresh, about one topic, wakes both the thread of the group and the fetching one."""
DELIVERY_TIMEOUT_MS: Final = 120_000
"""How long an output may wait for a leader; none of it has been committed."""


def shared(connection: Connection, settings: ReplicaSettings) -> dict[str, Any]:
    """Return what every client of a replica takes."""
    return connection.librdkafka() | {
        "client.id": settings.replica,
        "retry.backoff.ms": RETRY_BACKOFF_MS,
        "reconnect.backoff.ms": RETRY_BACKOFF_MS,
        "reconnect.backoff.max.ms": 1000,
    }


def producer(connection: Connection, settings: ReplicaSettings) -> dict[str, Any]:
    """Return the configuration of the output's producer."""
    return shared(connection, settings) | {
        "enable.idempotence": True,
        "linger.ms": 0,
        "message.timeout.ms": DELIVERY_TIMEOUT_MS,
    }


def any_consumer(connection: Connection, settings: ReplicaSettings) -> dict[str, Any]:
    """Return what consumers of every protocol take, share groups included."""
    return shared(connection, settings) | {
        "group.id": qualified(connection.namespace, Group.PAYMENT),
        "fetch.wait.max.ms": FETCH_WAIT_MS,
        "max.poll.interval.ms": POLL_INTERVAL_MS,
    }


def group_consumer(connection: Connection, settings: ReplicaSettings) -> dict[str, Any]:
    """Return what consumers take that own partitions and commit offsets."""
    return any_consumer(connection, settings) | {
        "auto.offset.reset": AUTO_OFFSET_RESET,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "queued.min.messages": QUEUED_MESSAGES,
        "fetch.queue.backoff.ms": FETCH_BACKOFF_MS,
        "fetch.error.backoff.ms": RETRY_BACKOFF_MS,
        "topic.metadata.refresh.interval.ms": WAKE_MS,
    }
