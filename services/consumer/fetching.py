"""aiokafka's fetcher, changed to return events. aiokafka's own record objects would cost more CPU than all else."""

from collections.abc import Callable, Collection, Iterator
from itertools import accumulate, islice
from typing import Any, Final

from aiokafka.consumer.fetcher import Fetcher, FetchResult, PartitionRecords
from aiokafka.structs import TopicPartition

from contracts.unpacking import Batch, Records
from services.consumer.connections import PromptFetcher
from services.consumer.interface import Event

CHUNK_RECORDS: Final = 200  # unpacked at once: so few that they are freed before Python's collector looks at them


class BatchFetcher(PromptFetcher, Fetcher):  # type: ignore[misc]  # aiokafka ships no types
    """Returns events. Within aiokafka, a chunk of records takes the place of a record."""

    events_of: Callable[[str, int, list[Any]], list[Event]]
    """Returns the events of a topic, a partition and its unpacked records."""

    async def fetched_records(self, partitions: Collection[Any], timeout: float = 0, max_records: int = 1) -> Any:  # noqa: ASYNC109
        """Return fetched events by partition. Wait for some for at most `timeout` seconds."""
        polled: dict[TopicPartition, list[Event]] = {}
        is_last = False
        while max_records > 0 and not is_last:
            # Only the first call may wait or raise: no task sees positions behind events that are not returned yet.
            found = await super().fetched_records(partitions, timeout, -(-max_records // CHUNK_RECORDS))
            for at, chunks in found.items():
                for chunk in chunks:
                    polled.setdefault(at, []).extend(chunk)
                    max_records -= len(chunk)
            timeout, is_last = 0, not found or {*map(type, self._records.values())} != {FetchResult}
        return polled

    def _get_actions_per_node(self, assignment: Any) -> Any:
        if self._records:  # the next fetch leaves out their partitions
            self._client.is_whole = False
        return super()._get_actions_per_node(assignment)

    async def _proc_fetch_request(self, assignment: Any, node_id: Any, request: Any) -> Any:
        needs_wakeup = await super()._proc_fetch_request(assignment, node_id, request)
        for result in self._records.values():
            if isinstance(result, FetchResult) and result._partition_records.__class__ is PartitionRecords:
                records = result._partition_records
                records.__class__, records._records.__class__ = _PartitionChunks, _ChunkedRecords
                records.events_of = self.events_of
        return needs_wakeup


class _PartitionChunks(PartitionRecords):  # type: ignore[misc]
    def _consumer_record(self, tp: TopicPartition, chunk: "_Chunk") -> Any:
        if len(chunk) != chunk[-1].offset - chunk[0].offset + 1:  # gaps, or records that were unpacked twice
            chunk.drop_repeated()
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
        return iter(lambda: _Chunk(islice(records, CHUNK_RECORDS)), _Chunk())


class _Chunk(list[Any]):
    offset = property(lambda self: self[-1].offset)

    def drop_repeated(self) -> None:
        """Remove records that follow one with the same or a higher offset."""
        highest = accumulate((record.offset for record in self), max, initial=-1)
        self[:] = [record for record, before in zip(self, highest, strict=False) if record.offset > before]
