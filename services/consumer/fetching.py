"""aiokafka's fetcher, changed to return events. aiokafka's own record of each would cost more than all else."""

from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Any, Final

from aiokafka.consumer.fetcher import FetchResult, PartitionRecords
from aiokafka.structs import TopicPartition

from contracts.unpacking import Batch, Records
from services.consumer.connections import PromptFetcher
from services.consumer.interface import Event

CHUNK_RECORDS: Final = 200  # unpacked at once: so few that they are freed before Python's collector looks at them
EventsOf = Callable[[str, int, list[Any]], list[Event]]


class BatchFetcher(PromptFetcher):
    """Returns events. Within aiokafka, a chunk of records takes the place of a record."""

    @classmethod
    def adopt(cls, consumer: Any, events_of: EventsOf = lambda *_: []) -> None:
        """Replace the class of the fetcher of `consumer`, which was started and has not fetched yet.

        events_of: returns the events of a topic, a partition and its unpacked records.
        """
        super().adopt(consumer)
        consumer._fetcher._records = _Results(events_of)

    async def fetched_records(self, partitions: Collection[Any], timeout: float = 0, max_records: int = 1) -> Any:  # noqa: ASYNC109
        """Return fetched events by partition. Wait for some for at most `timeout` seconds."""
        polled: dict[TopicPartition, list[Event]] = {}
        is_error = False  # the next poll raises it
        while max_records > 0 and not is_error:
            # Only the first call may wait, so no task sees positions behind records that are not returned yet.
            found = await super().fetched_records(partitions, timeout, -(-max_records // CHUNK_RECORDS))
            for at, chunks in found.items():
                for chunk in chunks:
                    polled.setdefault(at, []).extend(chunk)
                    max_records -= len(chunk)
            timeout, is_error = 0, not found or not isinstance(next(iter(self._records.values()), None), FetchResult)
        return polled


class _Results(dict[TopicPartition, Any]):
    def __init__(self, events_of: EventsOf) -> None:
        self._events_of = events_of

    def __setitem__(self, at: TopicPartition, result: Any) -> None:
        if isinstance(result, FetchResult):
            records = result._partition_records
            records.__class__, records._records.__class__ = _PartitionChunks, _ChunkedRecords
            records.events_of = self._events_of
        super().__setitem__(at, result)


class _PartitionChunks(PartitionRecords):  # type: ignore[misc]  # aiokafka ships no types
    events_of: EventsOf

    def _consumer_record(self, tp: TopicPartition, chunk: "_Chunk") -> list[Event]:
        first = self.next_fetch_offset
        records = chunk if chunk[0].offset >= first else [record for record in chunk if record.offset >= first]
        return self.events_of(tp.topic, tp.partition, records)


class _ChunkedRecords(Records):
    def next_batch(self) -> Any:
        if (batch := super().next_batch()) is not None:
            batch.__class__ = _ChunkedBatch
        return batch


class _ChunkedBatch(Batch):
    def __iter__(self) -> Iterator["_Chunk"]:
        records = super().__iter__()
        while chunk := _Chunk(islice(records, CHUNK_RECORDS)):
            yield chunk


class _Chunk(list[Any]):
    @property
    def offset(self) -> int:
        return int(self[-1].offset)
