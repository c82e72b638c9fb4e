"""Queries a topic's id and its largest record size.

Kafka gives each new topic an id. A different id under the same name means a different log. aiokafka's requests do not
return ids; DescribeTopicPartitions (Kafka 3.7) does. If a record is too large, a broker refuses its whole batch, and an
idempotent producer cannot recover from that. So such a record is refused before it is sent.
"""

import uuid
from collections.abc import Callable, Iterable
from typing import Any, Final

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError, MessageSizeTooLargeError, for_code
from aiokafka.protocol.admin import DescribeConfigsRequest

from contracts.topics import DEFAULT_MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES
from services.consumer.requests import describe_topic


async def topic_id(client: Any, topic: str) -> uuid.UUID | None:
    """Return the topic's id, or None if the broker has no ids. Raises KafkaError for no answer or an unknown topic."""
    node = client.get_random_node()
    if node is None:
        return None
    try:
        answer = await client.send(node, describe_topic(topic))
    except IncompatibleBrokerVersion:
        return None
    ((error_code, _, id_),) = answer.topics
    if error_code:
        raise for_code(error_code)(topic)
    return uuid.UUID(bytes=id_)


TOPIC_RESOURCE: Final = 2  # resource type of DescribeConfigsRequest
RECORD_OVERHEAD_BYTES: Final = 128  # at most, for a batch of one record, on top of key and value


class RecordSizes:
    """The largest record size of topics, queried once. If a limit is lowered later, only the broker enforces it.

    client: aiokafka's client. limit_batches: called with the largest batch (bytes) that all queried topics accept.
    """

    def __init__(self, client: Any, limit_batches: Callable[[int], None]) -> None:
        self._client, self._limit_batches = client, limit_batches
        self._max_bytes: dict[str, int] = {}

    async def query_limits(self, topics: Iterable[str]) -> None:
        """Query the limits that are not known yet. A broker that cannot return them is assumed to use the default."""
        unknown = [topic for topic in topics if topic not in self._max_bytes]
        if not unknown or (node := self._client.get_random_node()) is None:
            return
        limits = dict.fromkeys(unknown, DEFAULT_MAX_MESSAGE_BYTES)
        try:
            request = DescribeConfigsRequest([(TOPIC_RESOURCE, topic, [MAX_MESSAGE_BYTES]) for topic in unknown])
            answer = await self._client.send(node, request)
        except KafkaError as error:
            if error.retriable:
                return
        except NotImplementedError:  # the broker does not support the request
            pass
        else:
            entries_by_topic = [(topic, entry) for *_, topic, entries in answer.resources for entry in entries]
            limits |= {topic: int(entry[1]) for topic, entry in entries_by_topic if entry[0] == MAX_MESSAGE_BYTES}
        self._max_bytes |= limits
        self._limit_batches(min(self._max_bytes.values()))

    async def max_bytes(self, topic: str) -> int:
        """Return the limit for key and value of a record together (bytes)."""
        await self.query_limits([topic])
        return self._max_bytes.get(topic, DEFAULT_MAX_MESSAGE_BYTES) - RECORD_OVERHEAD_BYTES

    async def check(self, topic: str, key: bytes | None, value: bytes) -> None:
        """Raise MessageSizeTooLargeError if the topic does not accept a record of this size."""
        if (size := len(key or b"") + len(value)) > (limit := await self.max_bytes(topic)):
            raise MessageSizeTooLargeError(f"the record has {size} bytes; {topic} accepts {limit} (max.message.bytes)")
