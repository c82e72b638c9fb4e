"""A header may have any name: one that is not UTF-8 must not make the records around it unreadable.

Kafka's brokers take such a header. aiokafka raises UnicodeDecodeError while it unpacks the batch, which ends whoever
reads the partition, again after each restart.
"""

from collections.abc import Iterator
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import _MemoryRecordsPy


def read_any_header_name() -> None:
    """Have every consumer of aiokafka in this process show the bytes of such names that are no text as `\\xe4`."""
    fetcher.MemoryRecords = Records


class Records(_MemoryRecordsPy):  # type: ignore[misc]  # aiokafka ships no types
    """The records fetched of a partition, batch by batch."""

    def next_batch(self) -> Any:
        """Return the next batch; None: there is none."""
        raw = self._next_slice
        batch = super().next_batch()
        return batch if raw is None or batch.magic < 2 else _Batch(batch, raw)  # older ones have no headers


class _Batch:
    """A batch that is unpacked by aiokafka, and once more where that fails for a header's name."""

    def __init__(self, batch: Any, raw: memoryview) -> None:
        self._batch = batch
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._batch
        except UnicodeDecodeError:
            again = _DefaultRecordBatchPy(self._raw)
            again._maybe_uncompress()
            again._buffer = _Lenient(again._buffer)
            yield from again  # from its first record; the fetcher passes over the offsets that it has had


class _Lenient(bytearray):
    """Bytes any part of which can be decoded."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return _Lenient(found) if isinstance(index, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "") -> str:
        return super().decode(encoding, "backslashreplace")
