"""Reads records whose header names are not UTF-8.

Kafka's brokers accept such a header. aiokafka raises UnicodeDecodeError when it unpacks the batch, so every consumer of
the partition would exit, again after each restart.
"""

from collections.abc import Iterator
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import _MemoryRecordsPy


def read_any_header_name() -> None:
    """Patch aiokafka in this process: bytes of a header name that are not UTF-8 appear as `\\xe4`."""
    fetcher.MemoryRecords = Records


class Records(_MemoryRecordsPy):  # type: ignore[misc]  # aiokafka ships no types
    """The records fetched from a partition, batch by batch."""

    def next_batch(self) -> Any:
        """Return the next batch, or None at the end."""
        raw = self._next_slice
        batch = super().next_batch()
        return batch if raw is None or batch.magic < 2 else _Batch(batch, raw)  # older formats have no headers


class _Batch:
    """A batch that aiokafka unpacks, and unpacks again leniently if a header name is not UTF-8."""

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
            yield from again  # from the first record; the fetcher skips offsets that it already has


class _Lenient(bytearray):
    """Bytes that always decode."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return _Lenient(found) if isinstance(index, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "") -> str:
        return super().decode(encoding, "backslashreplace")
