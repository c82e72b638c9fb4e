"""aiokafka's fetcher, changed to hand over the fetched records many at a time.

aiokafka makes an object of its own of each record, one by one. That costs more than all else that a poll does.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final

from aiokafka.consumer.fetcher import FetchResult, PartitionRecords
from aiokafka.structs import TopicPartition

from contracts.unpacking import Batch, Records
from services.consumer.connections import PromptFetcher

CHUNK_RECORDS: Final = 500
"""Most records that are handed over at once. A poll exceeds its limit of records by less."""


class BatchFetcher(PromptFetcher):
    """Returns records as they were unpacked, with offset, timestamp, key, value and headers."""

    @classmethod
    def adopt(cls, consumer: Any) -> None:
        """Replace the class of the fetcher of `consumer`, which was started and has not fetched yet."""
        super().adopt(consumer)
        consumer._fetcher._records = _Results()

    async def fetched_records(
        self,
        partitions: Collection[TopicPartition],
        timeout: float = 0,  # noqa: ASYNC109  aiokafka's parameter
        max_records: int = CHUNK_RECORDS,
    ) -> dict[TopicPartition, list[Any]]:
        """Return fetched records. Wait for some for at most `timeout` seconds."""
        polled: dict[TopicPartition, list[Any]] = {}
        while max_records > 0:
            # Only the first of these calls may wait. So nobody sees the positions behind records not yet returned.
            chunks_by_partition = await super().fetched_records(partitions, timeout, -(-max_records // CHUNK_RECORDS))
            for at, chunks in chunks_by_partition.items():
                records = polled.setdefault(at, [])
                for chunk in chunks:
                    records += chunk
                    max_records -= len(chunk)
            if not chunks_by_partition or not isinstance(next(iter(self._records.values()), None), FetchResult):
                break  # an error is raised by the next poll
            timeout = 0
        return polled


class _Results(dict[TopicPartition, Any]):
    """Partition → its fetched records, or an error."""

    def __setitem__(self, at: TopicPartition, result: Any) -> None:
        if isinstance(result, FetchResult):
            result._partition_records.__class__ = _PartitionChunks
            result._partition_records._records.__class__ = _ChunkedRecords
        super().__setitem__(at, result)


class _PartitionChunks(PartitionRecords):  # type: ignore[misc]  # aiokafka ships no types
    """Iterates over chunks. Aborted transactions and control batches are left out."""

    def _consumer_record(self, tp: TopicPartition, chunk: "_Chunk") -> list[Any]:
        if chunk[0].offset < self.next_fetch_offset:
            return [record for record in chunk if record.offset >= self.next_fetch_offset]
        return chunk


class _ChunkedRecords(Records):
    def next_batch(self) -> Any:
        batch = super().next_batch()
        if batch is not None:
            batch.__class__ = _ChunkedBatch
        return batch


class _ChunkedBatch(Batch):
    def __iter__(self) -> Iterator["_Chunk"]:
        records = [*super().__iter__()]
        for first in range(0, len(records), CHUNK_RECORDS):
            yield _Chunk(records[first : first + CHUNK_RECORDS])


class _Chunk(list[Any]):
    """Consecutive records of a batch, at least one."""

    @property
    def offset(self) -> int:
        return int(self[-1].offset)
