"""Create topics. This is the first request of a run, so errors of the connection to Kafka are reported here."""

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
MAX_PARTITIONS_PER_REQUEST: Final = 5_000
"""Brokers reject a request that would create more than 10,000 partitions."""
SETTINGS: Final[dict[Topic, dict[str, str]]] = {
    Topic.PLANS: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.5"},
    Topic.HOLDS: {"cleanup.policy": "compact"},
    Topic.PROGRESS: {"retention.ms": "600000"},
    Topic.ORDERS_STATUS: {"retention.bytes": "134217728", "segment.bytes": "33554432"},
}
ADVICE: Final[dict[int, str]] = {
    KafkaError._AUTHENTICATION: "correct sasl.mechanism, sasl.username or sasl.password",
    KafkaError._SSL: "correct security.protocol or ssl.ca.location",
}
"""Error → remedy. These are errors after which librdkafka would retry forever."""


@contextmanager
def temporary_kafka(
    purpose: str, payment_partitions: int, pipeline_partitions: int = PIPELINE_PARTITIONS, *, is_planned: bool = False
) -> Iterator[Connection]:
    """Run a broker with every topic of a run during the block; yield the connection to it. is_planned: see Broker."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        broker = Broker(Path(folder), is_planned=is_planned)
        try:
            connection = Connection(bootstrap_servers=broker.start(), namespace=f"{purpose}-{uuid.uuid4().hex[:8]}")
            create_topics(connection, payment_partitions, pipeline_partitions)
            yield connection
        finally:
            broker.stop()


def create_topics(
    connection: Connection, payment_partitions: int, pipeline_partitions: int = PIPELINE_PARTITIONS
) -> None:
    """Create every topic of a run under the connection's namespace; existing topics remain unchanged.

    Raises TailpackError if the broker rejects a request or does not answer.
    """
    topics = [
        _new(connection.namespace, topic, partitions_of(topic, payment_partitions, pipeline_partitions))
        for topic in Topic
    ]
    admin = _create(connection, topics)
    _add_partitions(admin, qualified(connection.namespace, Topic.PAYMENTS_REQUESTED), payment_partitions)


def create_control_topics(connection: Connection, scaled: ScaledGroup, partitions: int) -> None:
    """Create the control topics between an autoscaler and its group, as `create_topics` does.

    partitions: also create the topic that the group reads, with this many partitions; 0: do not create it.
    """
    topics = [_new(connection.namespace, topic, 1) for topic in CONTROL]
    if partitions:
        topics.append(NewTopic(scaled.topic_in(connection.namespace), partitions, replication_factor=-1))
    _create(connection, topics)


def _new(namespace: str, topic: Topic, partitions: int) -> NewTopic:
    name, count = qualified(namespace, topic), min(MAX_PARTITIONS_PER_REQUEST, partitions)  # -1: the broker's default
    return NewTopic(name, num_partitions=count, replication_factor=-1, config=SETTINGS.get(topic, {}))


def _create(connection: Connection, topics: list[NewTopic]) -> AdminClient:
    errors: list[KafkaError] = []
    admin = _admin(connection, errors)
    creations = admin.create_topics(topics, request_timeout=DEADLINE_S)

    def answered() -> bool:
        admin.poll(0)  # calls error_cb
        for error in errors:
            if advice := ADVICE.get(error.code()):
                why = f"rejects the client ({error.str()}); {advice} in {_source(connection)}"
                raise TailpackError(f"Kafka at {connection.bootstrap_servers} {why}")
        return all(creation.done() for creation in creations.values())

    with suppress(WaitTimeoutError):
        until(answered, DEADLINE_S, "topics are created")
    for name, creation in creations.items():
        try:
            creation.result(0)
        except TimeoutError as error:
            raise TailpackError(_no_answer(connection, errors)) from error
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() == KafkaError._TIMED_OUT:
                raise TailpackError(_no_answer(connection, errors)) from error
            if reason.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                text = f"topic {name} could not be created on {connection.bootstrap_servers}: {reason.str()}"
                raise TailpackError(text) from error
    return admin


def _add_partitions(admin: AdminClient, topic: str, partitions: int) -> None:
    """Increase the partitions of `topic` to `partitions`; never reduce them. Raises TailpackError."""
    try:
        for count in range(MAX_PARTITIONS_PER_REQUEST, partitions, MAX_PARTITIONS_PER_REQUEST):
            if len(admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions) <= count:
                larger = NewPartitions(topic, min(count + MAX_PARTITIONS_PER_REQUEST, partitions))
                admin.create_partitions([larger], request_timeout=DEADLINE_S)[topic].result(DEADLINE_S)
    except KafkaException as error:
        why = error.args[0].str()
        raise TailpackError(f"topic {topic} could not be extended to {partitions} partitions: {why}") from error


def _admin(connection: Connection, errors: list[KafkaError]) -> AdminClient:
    try:
        return AdminClient(connection.librdkafka() | {"log_level": "0", "error_cb": errors.append})
    except KafkaException as error:
        why = error.args[0].str()
        raise TailpackError(f"{_source(connection)}: invalid ({why}); correct the property") from error


def _no_answer(connection: Connection, errors: list[KafkaError]) -> str:
    reasons = [error.str() for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]  # this has no reason
    reason = f" ({reasons[-1]})" if reasons else ""
    remedy = "start it, or correct --bootstrap-servers and --client-properties"
    return f"Kafka at {connection.bootstrap_servers} did not answer within {DEADLINE_S:.0f} s{reason}; {remedy}"


def _source(connection: Connection) -> str:
    return connection.client_properties or "the client properties (--client-properties)"
