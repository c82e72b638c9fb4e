"""Reads partitions without a group. Batches are unpacked within limits, which librdkafka has only for zstd."""

import asyncio
import logging
import threading
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from contracts.connection import Connection

T = TypeVar("T")
Place = tuple[str, int]
"""Topic and partition."""
BEGINNING: Final = -1
MAX_BATCH_MB: Final = 16
"""Default of the largest unpacked batch. The largest plan has 10 MB."""
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

        begins: first offset of each partition, or BEGINNING. tail: begin so many offsets before the ends instead; 0: do
        not. wait_ms: how long a broker may wait for more records before it answers. settings: of aiokafka's consumer.
        """
        from contracts.unpacking import MAX_POLL_BYTES, limit_unpacking  # noqa: PLC0415  aiokafka takes 0.3 s

        limit_unpacking(max_batch_mb)
        common = {"enable_auto_commit": False, "auto_offset_reset": "earliest", "fetch_max_bytes": MAX_POLL_BYTES // 2}
        self._options = connection.aiokafka() | common | {"fetch_max_wait_ms": wait_ms} | settings
        self._begins, self._tail = dict(begins), tail
        self._consumer: Any = None
        self.error = ""
        """The last error, from which the reader recovers by itself; empty: it was none, or records came since."""
        self._loop, self._is_connected = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="record-reader", daemon=True)
        self._thread.start()
        self._connecting = asyncio.run_coroutine_threadsafe(self._connect(), self._loop)

    def read(self, count: int, timeout_s: float) -> list[Any]:
        """Return at most `count` records, and wait up to `timeout_s` for the first. Each partition's are in order.

        With auto_offset_reset="none" it raises aiokafka's OffsetOutOfRangeError for records that retention removed.
        """
        return self._call(self._read(count, timeout_s))

    def positions(self) -> dict[Place, tuple[int, int]]:
        """Return partition → next offset and end, as far as they are known. Both are by the isolation level."""
        return self._call(self._positions())

    def is_at_end(self) -> bool:
        """Return whether every partition was read to its end."""
        found = self.positions()
        return len(found) == len(self._begins) and all(offset >= end for offset, end in found.values())

    def seek(self, begins: Mapping[Place, int]) -> None:
        """Go on at these offsets, also in further partitions."""
        self._call(self._assign(begins))

    def pause(self, place: Place) -> None:
        """Read no more of a partition."""
        self._call(self._pause(place))

    def close(self) -> None:
        """Disconnect."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(STOP_DEADLINE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_DEADLINE_S)

    def _call(self, request: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(request, self._loop).result()

    async def _connect(self) -> None:
        from aiokafka import AIOKafkaConsumer  # noqa: PLC0415
        from aiokafka.errors import KafkaError  # noqa: PLC0415

        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # `error` has what matters
        self._consumer = AIOKafkaConsumer(**self._options)
        starting: Any = self._consumer.start
        while True:
            try:
                if starting:
                    starting = await starting()
                if self._tail:
                    ends = await self._consumer.end_offsets([_at(place) for place in self._begins])
                    self._begins = {(at.topic, at.partition): max(0, end - self._tail) for at, end in ends.items()}
                await self._assign({})
                return self._is_connected.set()
            except KafkaError as error:
                self.error = str(error)
                await asyncio.sleep(RETRY_PAUSE_S)

    async def _assign(self, begins: Mapping[Place, int]) -> None:
        self._begins |= begins
        self._consumer.assign([_at(place) for place in self._begins])
        for place, offset in self._begins.items():
            if offset != BEGINNING:
                self._consumer.seek(_at(place), offset)

    async def _pause(self, place: Place) -> None:
        self._consumer.pause(_at(place))

    async def _read(self, count: int, timeout_s: float) -> list[Any]:
        from aiokafka.errors import KafkaError, OffsetOutOfRangeError  # noqa: PLC0415

        from contracts.unpacking import MAX_POLL_BYTES, poll_limit  # noqa: PLC0415

        try:
            if not self._is_connected.is_set():
                await asyncio.wait_for(self._is_connected.wait(), timeout_s)
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
        ends = {place: end for place in self._begins if (end := end_of(_at(place))) is not None}
        return {place: (await self._consumer.position(_at(place)), end) for place, end in ends.items()}

    async def _stop(self) -> None:
        self._connecting.cancel()
        if self._consumer is not None:
            await self._consumer.stop()


def _at(place: Place) -> Any:
    from aiokafka import TopicPartition  # noqa: PLC0415

    return TopicPartition(*place)
