"""Create topics. A run does this first, so a Kafka that cannot be used is reported here."""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from contracts.connection import Connection
from contracts.topics import CONTROL, PIPELINE_PARTITIONS, ScaledGroup, Topic, partitions_of, qualified
from contracts.waiting import WaitTimeoutError, until
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker

DEADLINE_S: Final = 30.0
AT_ONCE: Final = 5_000
"""Partitions: brokers refuse a request that would create more than 10,000."""
SETTINGS: Final[dict[Topic, dict[str, str]]] = {
    Topic.PLANS: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.5"},
    Topic.PROGRESS: {"retention.ms": "600000"},
    Topic.ORDERS_STATUS: {"retention.bytes": "134217728", "segment.bytes": "33554432"},
}
ADVICE: Final[dict[int, str]] = {
    KafkaError._AUTHENTICATION: "correct sasl.mechanism, sasl.username or sasl.password",
    KafkaError._SSL: "correct security.protocol or ssl.ca.location",
}
"""Errors that waiting does not fix; librdkafka itself would go on trying."""


@contextmanager
def own_kafka(
    purpose: str, payment_partitions: int, pipeline_partitions: int = PIPELINE_PARTITIONS
) -> Iterator[Connection]:
    """Yield the way to a broker that lives as long as the block, with every topic of a run."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        broker = Broker(Path(folder))
        try:
            connection = Connection(bootstrap_servers=broker.start(), namespace=f"{purpose}-{uuid.uuid4().hex[:8]}")
            create_topics(connection, payment_partitions, pipeline_partitions)
            yield connection
        finally:
            broker.stop()


def create_topics(
    connection: Connection, payment_partitions: int, pipeline_partitions: int = PIPELINE_PARTITIONS
) -> None:
    """Create every topic of a run under the connection's namespace; one that exists already is left as it is.

    Raises TailpackError when the broker refuses or does not answer.
    """
    topics = [
        _new(connection.namespace, topic, partitions_of(topic, payment_partitions, pipeline_partitions))
        for topic in Topic
    ]
    _grow(_create(connection, topics), qualified(connection.namespace, Topic.PAYMENTS_REQUESTED), payment_partitions)


def create_control_topics(connection: Connection, scaled: ScaledGroup, partitions: int) -> None:
    """Create the topics between an autoscaler and the group that it scales, as `create_topics`.

    partitions: of the topic that the group reads, where that shall be created, too; 0: it is left alone.
    """
    topics = [_new(connection.namespace, topic, 1) for topic in CONTROL]
    if partitions:
        topics.append(NewTopic(scaled.topic_in(connection.namespace), partitions, replication_factor=-1))
    _create(connection, topics)


def _new(namespace: str, topic: Topic, partitions: int) -> NewTopic:
    name, count = qualified(namespace, topic), min(AT_ONCE, partitions)  # -1: the broker's default
    return NewTopic(name, num_partitions=count, replication_factor=-1, config=SETTINGS.get(topic, {}))


def _create(connection: Connection, topics: list[NewTopic]) -> AdminClient:
    errors: list[KafkaError] = []
    admin = _admin(connection, errors)
    creations = admin.create_topics(topics, request_timeout=DEADLINE_S)

    def answered() -> bool:
        admin.poll(0)  # errors are reported in here
        for error in errors:
            if advice := ADVICE.get(error.code()):
                why = f"cannot be entered ({error.str()}); {advice} in {_source(connection)}"
                raise TailpackError(f"Kafka at {connection.bootstrap_servers} {why}")
        return all(creation.done() for creation in creations.values())

    with suppress(WaitTimeoutError):
        until(answered, DEADLINE_S, "topics are created")
    for name, creation in creations.items():
        try:
            creation.result(0)
        except TimeoutError as silent:
            raise TailpackError(_silent(connection, errors)) from silent
        except KafkaException as refused:
            reason = refused.args[0]
            if reason.code() == KafkaError._TIMED_OUT:
                raise TailpackError(_silent(connection, errors)) from refused
            if reason.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                text = f"topic {name} could not be created on {connection.bootstrap_servers}: {reason.str()}"
                raise TailpackError(text) from refused
    return admin


def _grow(admin: AdminClient, topic: str, partitions: int) -> None:
    """Let `topic` have as many partitions; one that has them, or more, is left as it is. Raises TailpackError."""
    try:
        for there in range(AT_ONCE, partitions, AT_ONCE):
            if len(admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions) <= there:
                larger = NewPartitions(topic, min(there + AT_ONCE, partitions))
                admin.create_partitions([larger], request_timeout=DEADLINE_S)[topic].result(DEADLINE_S)
    except KafkaException as refused:
        why = refused.args[0].str()
        raise TailpackError(f"topic {topic} could not get {partitions} partitions: {why}") from refused


def _admin(connection: Connection, errors: list[KafkaError]) -> AdminClient:
    try:
        return AdminClient(connection.librdkafka() | {"log_level": "0", "error_cb": errors.append})
    except KafkaException as unusable:
        why = unusable.args[0].str()
        raise TailpackError(f"{_source(connection)} cannot be used ({why}); correct what it names") from unusable


def _silent(connection: Connection, errors: list[KafkaError]) -> str:
    telling = [error for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]  # that one gives no reason
    reason = f" ({telling[-1].str()})" if telling else ""
    remedy = "start it, or correct --bootstrap-servers and --client-properties"
    return f"Kafka at {connection.bootstrap_servers} did not answer in {DEADLINE_S:.0f} s{reason}; {remedy}"


def _source(connection: Connection) -> str:
    return connection.client_properties or "the client properties (--client-properties)"
