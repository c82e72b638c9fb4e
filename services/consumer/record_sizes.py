"""How large a record each topic takes. What its brokers would refuse is refused before it is sent.

They refuse a batch as a whole, and a producer that writes nothing twice does not survive it: none of what follows fits
on to what they have.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from aiokafka.protocol.admin import DescribeConfigsRequest

from contracts.topics import DEFAULT_LARGEST, LARGEST

TOPIC: Final = 2
"""What a description of settings is asked for."""
OVERHEAD: Final = 128
"""Most bytes that a record alone in its batch has beside key and value."""


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
