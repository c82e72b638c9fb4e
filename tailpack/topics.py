"""Create a run's topics."""

from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.connection import Connection
from contracts.topics import Topic, partitions_of, qualified
from tailpack.errors import TailpackError

DEADLINE_S: Final = 30.0
SETTINGS: Final[dict[Topic, dict[str, str]]] = {
    Topic.PLANS: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.5"},
    Topic.PROGRESS: {"retention.ms": "600000"},
}


def create_topics(connection: Connection, payment_partitions: int, replication: int = -1) -> None:
    """Create every topic under the connection's namespace; one that exists already is left as it is.

    replication: -1 takes the broker's default. Raises TailpackError when the broker refuses or does not answer.
    """
    admin = AdminClient(connection.librdkafka() | {"log_level": "0"})
    topics = [
        NewTopic(
            qualified(connection.namespace, topic),
            num_partitions=partitions_of(topic, payment_partitions),
            replication_factor=replication,
            config=SETTINGS.get(topic, {}),
        )
        for topic in Topic
    ]
    for name, future in admin.create_topics(topics, request_timeout=DEADLINE_S).items():
        try:
            future.result(DEADLINE_S + 5)  # librdkafka gives its own answer at the deadline
        except TimeoutError as silent:
            raise TailpackError(
                f"Kafka at {connection.bootstrap_servers} did not answer in {DEADLINE_S:.0f} s"
            ) from silent
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise TailpackError(
                    f"topic {name} could not be created on {connection.bootstrap_servers}: {refused.args[0].str()}"
                ) from refused
