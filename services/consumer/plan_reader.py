"""Reads the plan topic to its end, then follows it. A new plan arrives within milliseconds."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from contracts.plan import PlanRecord, decode_plan
from contracts.unpacking import MAX_POLL_BYTES, MAX_POLL_RECORDS, poll_limit
from contracts.validation import DECODE_ERRORS
from services.consumer.connections import Client, PromptFetcher

log = logging.getLogger(__name__)

FETCH_WAIT_MS: Final = 500
"""Longest wait of an empty fetch. A new record ends it at once."""
POLL_MS: Final = 1000
RETRY_PAUSE_S: Final = 0.5


class PlanReader:
    """Reads the plans of one group and keeps the one with the highest epoch."""

    def __init__(self, connection: Mapping[str, Any], topic: str, group: str) -> None:
        self._partition = TopicPartition(topic, 0)
        self._group = group
        self._consumer = AIOKafkaConsumer(
            **connection,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            max_poll_records=MAX_POLL_RECORDS,
        )
        Client.adopt(self._consumer._client)
        self.newest_plan: PlanRecord | None = None
        self.news = asyncio.Event()
        """Set when `newest_plan` has changed. The membership clears it."""

    async def connect(self) -> None:
        """Connect. May be called again after an error."""
        await self._consumer.start()
        PromptFetcher.adopt(self._consumer)

    async def read_to_end(self) -> None:
        """Read all plans that exist now."""
        self._consumer.assign([self._partition])
        await self._consumer.seek_to_beginning(self._partition)
        end = (await self._consumer.end_offsets([self._partition]))[self._partition]
        while await self._consumer.position(self._partition) < end:  # the last offset may be a transaction's marker
            await self._poll()

    async def follow(self) -> None:
        """Read new plans until cancelled. While no broker answers, the last plan stays in force."""
        while True:
            try:
                await self._poll()
            except KafkaError as error:
                if not error.retriable:
                    raise
                log.warning("Plans cannot be read now (%s); the last one stays in force", error)
                await asyncio.sleep(RETRY_PAUSE_S)

    async def stop(self) -> None:
        """Disconnect."""
        await self._consumer.stop()

    async def _poll(self) -> None:
        with poll_limit(MAX_POLL_BYTES):
            batches = await self._consumer.getmany(self._partition, timeout_ms=POLL_MS)
        for record in batches.get(self._partition, ()):
            if record.value is not None:  # a tombstone withdraws nothing: the last plan stays in force
                self._read_record(record)

    def _read_record(self, record: Any) -> None:
        try:
            plan = decode_plan(record.value, record.key, self._group)
        except DECODE_ERRORS as error:
            log.warning("Skipped an invalid plan at offset %d of %s: %s", record.offset, record.topic, error)
            return
        if plan is not None and (self.newest_plan is None or plan.epoch > self.newest_plan.epoch):
            self.newest_plan = plan
            self.news.set()
