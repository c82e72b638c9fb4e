"""Reads partitions without a group. Unpacking has a limit. librdkafka has none for gzip and lz4."""

import asyncio
import logging
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from contracts.connection import Connection
from contracts.unpacking import MAX_POLL_BYTES, limit_unpacking, poll_limit

T = TypeVar("T")
Place = tuple[str, int]
"""Topic and partition."""
BEGINNING: Final = -1
MAX_BATCH_MB: Final = 16
"""Default of the largest unpacked batch. The largest plan has 10 MB."""
BATCH: Final = 10_000  # records
RETRY_PAUSE_S: Final = 0.2
STOP_DEADLINE_S: Final = 5.0


class RecordReader:
    """Fetches records in a thread of its own. It connects, and reconnects after errors, until it is closed."""

    def __init__(
        self,
        connection: Connection,
        begins: Mapping[Place, int],
        *,
        tail: int = 0,
        wait_ms: int = 500,
        max_batch_mb: float = MAX_BATCH_MB,
        **settings: Any,
    ) -> None:
        """Start to read. Raises InvalidSettingsError.

        begins: first offset of each partition, or BEGINNING. tail: if set, begin this number of offsets before the ends
        instead. wait_ms: how long a broker may wait for records before it answers. settings: of aiokafka's consumer.
        """
        limit_unpacking(max_batch_mb)
        common = {"enable_auto_commit": False, "auto_offset_reset": "earliest", "fetch_max_bytes": MAX_POLL_BYTES // 2}
        self._options = connection.aiokafka() | common | {"fetch_max_wait_ms": wait_ms} | settings
        self._begins, self._tail = dict(begins), tail
        self._consumer: Any = None
        self.error = ""
        """The last error, after which the reader continues; empty: no error since the last records arrived."""
        self._loop, self._is_connected = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="record-reader", daemon=True)
        self._thread.start()
        self._connecting = asyncio.run_coroutine_threadsafe(self._connect(), self._loop)

    def read(self, count: int, timeout_s: float) -> list[Any]:
        """Return at most `count` records, in order by partition. Wait up to `timeout_s` seconds for the first.

        If retention removed the next record: with auto_offset_reset="none" it raises aiokafka's OffsetOutOfRangeError.
        """
        is_fetched = self._is_connected.is_set() and self._consumer._fetcher._records
        return self._call(self._read(count, timeout_s)) if timeout_s or is_fetched else []

    def to_end(self, silent_s: float) -> Iterator[Any]:
        """Yield all records up to the end. Raises TimeoutError if none arrives for `silent_s` seconds."""
        answered_s = time.monotonic()
        while not self.is_at_end():
            if found := self.read(BATCH, 0.2):
                yield from found
                answered_s = time.monotonic()
            elif time.monotonic() - answered_s > silent_s:
                raise TimeoutError(self.error or "no record arrives")

    def positions(self) -> dict[Place, tuple[int, int]]:
        """Return partition → next offset and end. Unknown partitions are left out."""
        return self._call(self._positions())

    def is_at_end(self) -> bool:
        """Return whether every partition was read to its end."""
        found = self.positions()
        return len(found) == len(self._begins) and all(offset >= end for offset, end in found.values())

    def seek(self, begins: Mapping[Place, int]) -> None:
        """Continue at these offsets. New partitions are added."""
        self._call(self._assign(begins))

    def pause(self, place: Place) -> None:
        """Stop reading a partition."""
        self._loop.call_soon_threadsafe(self._consumer.pause, TopicPartition(*place))

    def close(self) -> None:
        """Disconnect."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(STOP_DEADLINE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_DEADLINE_S)
        self._loop.close()

    def _call(self, request: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(request, self._loop).result()

    async def _connect(self) -> None:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # `error` has what matters
        self._consumer = AIOKafkaConsumer(**self._options)
        starting: Any = self._consumer.start
        while True:
            try:
                starting = starting and await starting()
                if self._tail:
                    ends = await self._consumer.end_offsets([TopicPartition(*place) for place in self._begins])
                    self._begins = {(at.topic, at.partition): max(0, end - self._tail) for at, end in ends.items()}
                await self._assign({})
                return self._is_connected.set()
            except (KafkaError, OSError, ValueError) as error:  # ValueError: a host that is no name
                self.error = str(error)
                await asyncio.sleep(RETRY_PAUSE_S)

    async def _assign(self, begins: Mapping[Place, int]) -> None:
        self._begins |= begins
        self._consumer.assign([TopicPartition(*place) for place in self._begins])
        for place, offset in self._begins.items():
            if offset != BEGINNING:
                self._consumer.seek(TopicPartition(*place), offset)

    async def _read(self, count: int, timeout_s: float) -> list[Any]:
        try:
            if not self._is_connected.is_set():
                async with asyncio.timeout(timeout_s):
                    await self._is_connected.wait()
            with poll_limit(MAX_POLL_BYTES):
                found = await self._consumer.getmany(timeout_ms=round(timeout_s * 1000), max_records=count)
        except OffsetOutOfRangeError:
            raise
        except TimeoutError:
            return []
        except KafkaError as error:
            self.error = str(error)
            await asyncio.sleep(timeout_s)
            return []
        self._begins |= {(at.topic, at.partition): records[-1].offset + 1 for at, records in found.items()}
        self.error = "" if found else self.error
        return [record for records in found.values() for record in records]

    async def _positions(self) -> dict[Place, tuple[int, int]]:
        if not self._is_connected.is_set():
            return {}
        committed = self._options.get("isolation_level") == "read_committed"
        end_of = self._consumer.last_stable_offset if committed else self._consumer.highwater
        ends = {place: end for place in self._begins if (end := end_of(TopicPartition(*place))) is not None}
        return {place: (await self._consumer.position(TopicPartition(*place)), end) for place, end in ends.items()}

    async def _stop(self) -> None:
        self._connecting.cancel()
        if self._consumer is not None:
            await self._consumer.stop()
