"""How large a record each topic takes. What its brokers would refuse is refused before it is sent.

They refuse a batch as a whole, and a producer that writes nothing twice does not survive it: none of what follows fits
on to what they have.
"""

from collections.abc import Callable, Iterable
from typing import Final

from aiokafka.errors import MessageSizeTooLargeError

from contracts.connection import Connection
from services.common.preflight import largest_records

OVERHEAD: Final = 128
"""Most bytes that a record alone in its batch has beside key and value."""


class RecordSizes:
    """Of the topics that were asked about; a limit that is lowered later is met at the broker.

    limit_batches: told the bytes of the largest batch that all of them take.
    """

    def __init__(self, connection: Connection, limit_batches: Callable[[int], None]) -> None:
        self._connection = connection
        self._limit_batches = limit_batches
        self._largest: dict[str, int] = {}

    async def learn(self, topics: Iterable[str]) -> None:
        """Ask about those that are not known. Where nobody answers, or we may not ask, Kafka's default is taken."""
        if unknown := [topic for topic in topics if topic not in self._largest]:
            self._largest |= await largest_records(self._connection, unknown)
            self._limit_batches(min(self._largest.values()))

    async def room(self, topic: str) -> int:
        """Return how many bytes key and value of a record may have together."""
        await self.learn([topic])
        return self._largest[topic] - OVERHEAD

    async def check(self, topic: str, key: bytes | None, value: bytes) -> None:
        """Raise MessageSizeTooLargeError for a record that the topic does not take."""
        if (size := len(key or b"") + len(value)) > (room := await self.room(topic)):
            raise MessageSizeTooLargeError(f"the record has {size} bytes; {topic} takes {room} (max.message.bytes)")
