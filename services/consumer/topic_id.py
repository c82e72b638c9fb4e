"""The id that Kafka gives a topic when it is created: another one under the same name means another log.

aiokafka has no request that tells it; DescribeTopicPartitions (Kafka 3.7) does, one partition being enough.
"""

import uuid
from collections.abc import Callable
from io import BytesIO
from typing import Any, Final

from aiokafka.errors import IncompatibleBrokerVersion, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import AbstractType, CompactArray, CompactString, Int8, Int16, Int32, Schema, TaggedFields

NULL: Final = -1


class Uuid(AbstractType[uuid.UUID]):  # type: ignore[misc]  # aiokafka ships no types
    """16 bytes."""

    @classmethod
    def encode(cls, value: uuid.UUID) -> bytes:
        """Return its bytes."""
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> uuid.UUID:
        """Read it."""
        return uuid.UUID(bytes=data.read(16))


class Answer(Response):  # type: ignore[misc]
    """Of one topic, up to its id; what follows is left unread."""

    API_KEY = 75
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("topics", CompactArray(("error_code", Int16), ("name", CompactString("utf-8")), ("topic_id", Uuid))),
    )


class Question(RequestStruct):  # type: ignore[misc]
    """As it goes over the wire."""

    API_KEY = 75
    API_VERSION = 0
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = Answer
    SCHEMA = Schema(
        ("topics", CompactArray(("name", CompactString("utf-8")), ("tags", TaggedFields))),
        ("response_partition_limit", Int32),
        ("cursor", Int8),
        ("tags", TaggedFields),
    )


class DescribeTopicPartitions(Request[Question]):  # type: ignore[misc]
    """Asks for one partition of one topic."""

    API_KEY = 75

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: Callable[..., Any]) -> Any:
        """Return the request; its cursor is null."""
        return request_struct_class([(self._topic, {})], 1, NULL, {})


async def topic_id(client: Any, topic: str) -> uuid.UUID | None:
    """Return the id; None where the brokers do not tell. Raises KafkaError: not there, no broker answers."""
    node = client.get_random_node()
    if node is None:
        return None
    try:
        answer = await client.send(node, DescribeTopicPartitions(topic))
    except (IncompatibleBrokerVersion, NotImplementedError):
        return None
    ((error_code, _, found),) = answer.topics
    if error_code:
        raise for_code(error_code)(topic)
    assert isinstance(found, uuid.UUID)
    return found
