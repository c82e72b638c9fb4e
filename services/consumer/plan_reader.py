"""Reads the plan topic to its end, then follows it. A new plan arrives within milliseconds."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from contracts.plan import PLAN_VERSION, PlanRecord
from contracts.validation import DECODE_ERRORS
from services.common.unpacking import MAX_POLL_BYTES, MAX_POLL_RECORDS, poll_limit
from services.consumer.connections import Client

log = logging.getLogger(__name__)

FETCH_WAIT_MS: Final = 500
"""Longest wait of an empty fetch. A new record ends it at once."""
POLL_MS: Final = 1000
RETRY_PAUSE_S: Final = 0.5


def decode_plan(value: bytes) -> PlanRecord | str:
    """Return the plan in `value`, or why it is not valid. Unknown fields are tolerated."""
    try:
        plan = msgspec.json.decode(value, type=PlanRecord)
    except DECODE_ERRORS as error:
        return str(error)
    return plan_problem(plan) or plan


def plan_problem(plan: PlanRecord) -> str | None:
    """Return why `plan` is not valid; None if it is."""
    if plan.v != PLAN_VERSION:
        return f"version {plan.v} is not supported (supported: {PLAN_VERSION})"
    return None if plan.epoch >= 1 else f"epoch {plan.epoch} is below 1"


class PlanReader:
    """Reads plans and keeps the one with the highest epoch."""

    def __init__(self, connection: Mapping[str, Any], topic: str) -> None:
        self._partition = TopicPartition(topic, 0)
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
        """Set when `newest_plan` has changed; the membership clears it."""

    async def connect(self) -> None:
        """Connect. May be called again after an error."""
        await self._consumer.start()

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
                self._read_record(record.offset, record.value)

    def _read_record(self, offset: int, value: bytes) -> None:
        plan = decode_plan(value)
        if isinstance(plan, str):
            log.warning("Skipped an invalid plan at offset %d of %s: %s", offset, self._partition.topic, plan)
        else:
            self._replace_if_newer(plan)

    def accept_passed_plan(self, plan: PlanRecord) -> None:
        """Use a plan that another member has passed on, if it is newer."""
        if plan_problem(plan) is None and self._replace_if_newer(plan):
            log.warning("Got plan %d from another member, not yet from topic %s", plan.epoch, self._partition.topic)

    def _replace_if_newer(self, plan: PlanRecord) -> bool:
        is_newer = self.newest_plan is None or plan.epoch > self.newest_plan.epoch
        if is_newer:
            self.newest_plan = plan
            self.news.set()
        return is_newer
