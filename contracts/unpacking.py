"""Unpacks fetched batches within limits. A batch that cannot be read becomes one refused record. The consumer goes on.

Brokers limit only the packed size. A batch of 16 kB may unpack to 500 MB, and aiokafka would unpack it at once. Brokers
also accept header names that are not UTF-8, for which aiokafka raises an error.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from typing import Any, Final

import cramjam
from aiokafka import codec
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import _MemoryRecordsPy
from aiokafka.record.util import decode_varint_py

log = logging.getLogger(__name__)

MAX_BATCH_MB: Final = 4
"""Default of the largest size of an unpacked batch. While its records are copied, a process needs twice as much."""
MAX_POLL_BYTES: Final = 8_000_000
"""Limit of the bytes that one poll returns and that wait in a consumer. The batch that reaches it is included."""
MAX_POLL_RECORDS: Final = 5_000
_FIRST_BUFFER_BYTES: Final = 4096
_BUFFER_GROWTH: Final = 8
_BUFFER_IS_FULL: Final = "failed to write whole buffer"  # in cramjam's error
_SNAPPY_JAVA: Final = b"\x82SNAPPY\0"  # begins a sequence of blocks, each after its length
_MODULES: Final = ("default_records", "legacy_records", "_crecords.default_records", "_crecords.legacy_records")
"""Modules in aiokafka.record that unpack batches, in Python and in C, of the present and older formats."""
_max_batch_bytes = MAX_BATCH_MB * 1_000_000
_poll_bytes_left: ContextVar[int | None] = ContextVar("_poll_bytes_left", default=None)


class Unreadable(bytes):
    """The empty value of the record that replaces all records of a batch that cannot be read."""

    reason: str = ""
    offsets: int = 1
    """Number of offsets that it stands for, at most."""


def limit_unpacking(max_batch_mb: float = MAX_BATCH_MB) -> None:
    """Patch aiokafka in this process. In header names, bytes that are not UTF-8 become text such as `\\xe4`."""
    global _max_batch_bytes  # noqa: PLW0603  # aiokafka's decoders have no other argument
    _max_batch_bytes = round(max_batch_mb * 1e6)
    fetcher.MemoryRecords = Records
    for module in (import_module(f"aiokafka.record.{name}") for name in _MODULES):
        for name, decode in LIMITED_DECODERS.items():
            if hasattr(module, name):
                setattr(module, name, decode)


@contextmanager
def poll_limit(max_bytes: int) -> Iterator[None]:
    """Once a poll in this block has returned `max_bytes`, other fetched batches stay packed and are fetched again."""
    token = _poll_bytes_left.set(max_bytes)
    try:
        yield
    finally:
        _poll_bytes_left.reset(token)


def _count(size: int) -> None:
    if (left := _poll_bytes_left.get()) is not None:
        _poll_bytes_left.set(left - size)


class Records(_MemoryRecordsPy):  # type: ignore[misc]  # aiokafka ships no types
    """The records fetched from a partition, batch by batch."""

    def has_next(self) -> bool:
        """Return whether there is a batch, and this poll may return more."""
        left = _poll_bytes_left.get()
        return self._next_slice is not None and (left is None or left > 0)

    def next_batch(self) -> Any:
        """Return the next batch, or None at the end."""
        raw = self._next_slice
        batch = super().next_batch()
        _count(len(raw or b""))
        return None if raw is None else Batch(batch, raw)


class Batch:
    """A batch that aiokafka unpacks, and unpacks again leniently if a header name is not UTF-8."""

    def __init__(self, batch: Any, raw: memoryview) -> None:
        self._batch, self._raw = batch, raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            try:
                yield from self._batch
            except UnicodeDecodeError:
                again = _DefaultRecordBatchPy(self._raw)
                again._read_msg = partial(again._read_msg, decode_varint_py)  # the one in C reads beyond the buffer
                again._maybe_uncompress()
                again._buffer = _Lenient(again._buffer)
                yield from again  # from the first record; the fetcher skips offsets that it already has
        except Exception as error:
            yield _Replacement(self._batch, error)


class _Replacement:
    """One record, at the last offset of a batch, in place of all that cannot be read."""

    key = checksum = None
    headers, timestamp_type = (), 0

    def __init__(self, batch: Any, error: Exception) -> None:
        self.offset = batch.next_offset - 1
        self.timestamp = max(0, getattr(batch, "max_timestamp", 0))
        self.value = Unreadable()
        first = getattr(batch, "base_offset", self.offset)
        self.value.offsets = self.offset - first + 1
        self.value.reason = f"the batch of offsets {first} to {self.offset} cannot be read: {error!r}"
        log.warning("Refused records: %s", self.value.reason)


class _Lenient(bytearray):
    """Bytes that always decode."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return _Lenient(found) if isinstance(index, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "") -> str:
        return super().decode(encoding, "backslashreplace")


def _check(size: int) -> None:
    if size > _max_batch_bytes:
        raise OverflowError(f"it unpacks to more than max_batch_mb = {_max_batch_bytes / 1e6:g} MB")


def _unpack_snappy(packed: Any) -> Any:
    view, blocks, at = memoryview(packed), [], 16
    if bytes(view[: len(_SNAPPY_JAVA)]) != _SNAPPY_JAVA:
        blocks, at = [view], len(view)
    while at < len(view):
        end = at + 4 + int.from_bytes(view[at : at + 4])
        blocks.append(view[at + 4 : end])
        at = end
    if at != len(view):
        raise ValueError("the snappy data is not complete")
    _check(size := sum(map(cramjam.snappy.decompress_raw_len, blocks)))
    _count(size)
    return codec.snappy_decode(packed)


def _unpack_into(decompress_into: Callable[[Any, Any], int], packed: Any) -> Any:
    size = max(_FIRST_BUFFER_BYTES, 4 * len(packed))
    while True:
        buffer = bytearray(min(size, _max_batch_bytes))
        try:
            _count(unpacked := decompress_into(packed, buffer))
            return memoryview(buffer)[:unpacked]
        except cramjam.DecompressionError as error:
            if _BUFFER_IS_FULL not in str(error):
                raise
        _check(size)
        size *= _BUFFER_GROWTH


LIMITED_DECODERS: Final[dict[str, Callable[[Any], Any]]] = {"snappy_decode": _unpack_snappy} | {
    f"{name}_decode": partial(_unpack_into, getattr(cramjam, name).decompress_into) for name in ("gzip", "lz4", "zstd")
}
"""Replacements of aiokafka's decoders."""
