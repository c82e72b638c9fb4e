"""Read the topics of a large run in Spark's workers, and join their records to events."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from contracts.topics import Topic
from report.records import JoinedEvents, Record, event_id
from report.topics import RunReader

RECORDS_PER_TASK: Final = 500_000
"""Records that a task joins in its memory."""


def write_events(place: Path, refused: Mapping[str, int], *, context: Any, reader: RunReader) -> set[int]:
    """Read each partition in a task; then one task joins all records of an event. Implements EventWriter."""
    parts = reader.partitions(reader.events)
    tasks = max(context.defaultParallelism, -(-reader.count() // RECORDS_PER_TASK))
    records = context.parallelize(parts, len(parts)).flatMap(partial(_read, reader.folder)).keyBy(event_id)
    join = partial(_join, topics=reader.events, refused=dict(refused), place=place)
    return set(records.partitionBy(tasks, _hash).values().mapPartitionsWithIndex(join).collect())


def _read(folder: Path, partition: tuple[str, int]) -> Iterator[Record]:
    return RunReader(folder).records([partition])


def _hash(event: str) -> int:
    return crc32(event.encode(errors="replace"))


def _join(
    task: int, records: Iterator[Record], topics: Mapping[str, Topic], refused: Mapping[str, int], place: Path
) -> Iterator[int]:
    joined = JoinedEvents(topics, refused)
    for record in records:
        joined.add(record)
    yield from joined.write(place / f"part-{task}.parquet")
