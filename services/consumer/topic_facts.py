"""The id of a topic, and how large a record it takes.

Kafka gives a topic an id when it is created: another one under the same name means another log. aiokafka has no request
for it; DescribeTopicPartitions (Kafka 3.7) has, one partition being enough. Brokers refuse a batch with a record that
is too large as a whole, and an idempotent producer cannot recover from that, so such a record is refused before it is
sent.
"""

import uuid
from collections.abc import Callable, Iterable
from typing import Any, Final

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError, MessageSizeTooLargeError, for_code
from aiokafka.protocol.admin import DescribeConfigsRequest

from contracts.topics import DEFAULT_LARGEST, LARGEST
from services.consumer.requests import describe_topic


async def topic_id(client: Any, topic: str) -> uuid.UUID | None:
    """Return the id; None where the brokers do not tell. Raises KafkaError: not there, no broker answers."""
    node = client.get_random_node()
    if node is None:
        return None
    try:
        answer = await client.send(node, describe_topic(topic))
    except (IncompatibleBrokerVersion, NotImplementedError):
        return None
    ((error_code, _, found),) = answer.topics
    if error_code:
        raise for_code(error_code)(topic)
    assert isinstance(found, uuid.UUID)
    return found


TOPIC: Final = 2  # the kind of resource whose settings are described
OVERHEAD: Final = 128  # most bytes that a record alone in its batch has beside key and value


class RecordSizes:
    """Of the topics that were asked about; a limit that is lowered later is met at the broker.

    client: aiokafka's. limit_batches: told the bytes of the largest batch that all of them take.
    """

    def __init__(self, client: Any, limit_batches: Callable[[int], None]) -> None:
        self._client = client
        self._limit_batches = limit_batches
        self._largest: dict[str, int] = {}

    async def learn(self, topics: Iterable[str]) -> None:
        """Ask about those that are not known. Where no broker tells, Kafka's default is taken."""
        unknown = [topic for topic in topics if topic not in self._largest]
        if not unknown or (node := self._client.get_random_node()) is None:
            return
        found = dict.fromkeys(unknown, DEFAULT_LARGEST)
        try:
            answer = await self._client.send(node, DescribeConfigsRequest([(TOPIC, one, [LARGEST]) for one in unknown]))
        except KafkaError as unanswered:
            if unanswered.retriable:
                return
        except NotImplementedError:  # a broker that does not know the question
            pass
        else:
            told = [(topic, entry) for *_, topic, entries in answer.resources for entry in entries]
            found |= {topic: int(entry[1]) for topic, entry in told if entry[0] == LARGEST}
        self._largest |= found
        self._limit_batches(min(self._largest.values()))

    async def room(self, topic: str) -> int:
        """Return how many bytes key and value of a record may have together."""
        await self.learn([topic])
        return self._largest.get(topic, DEFAULT_LARGEST) - OVERHEAD

    async def check(self, topic: str, key: bytes | None, value: bytes) -> None:
        """Raise MessageSizeTooLargeError for a record that the topic does not take."""
        if (size := len(key or b"") + len(value)) > (room := await self.room(topic)):
            raise MessageSizeTooLargeError(f"the record has {size} bytes; {topic} takes {room} (max.message.bytes)")
