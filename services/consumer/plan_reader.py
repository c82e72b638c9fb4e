"""Reads the plan topic to its end at the start, then follows it: a new plan arrives within milliseconds."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from contracts.plan import PLAN_VERSION, PlanRecord
from contracts.validation import UNDECODABLE
from services.consumer.connections import Client

log = logging.getLogger(__name__)

FETCH_WAIT_MS: Final = 500
"""A new record ends a fetch at once; this only sets how often an idle reader asks again."""
POLL_MS: Final = 1000
AWAY_S: Final = 0.5


def decode_plan(value: bytes) -> PlanRecord | str:
    """Return the plan in `value`, or why it cannot be carried out. Unknown fields are tolerated."""
    try:
        plan = msgspec.json.decode(value, type=PlanRecord)
    except UNDECODABLE as malformed:
        return str(malformed)
    return why_not(plan) or plan


def why_not(plan: PlanRecord) -> str | None:
    """Return why `plan` cannot be carried out; None if it can."""
    if plan.v != PLAN_VERSION:
        return f"version {plan.v} is unknown; this replica understands {PLAN_VERSION}"
    return None if plan.epoch >= 1 else f"epoch {plan.epoch} is below 1"


class PlanReader:
    """Keeps the plan of the newest epoch."""

    def __init__(self, connection: Mapping[str, Any], topic: str) -> None:
        self._partition = TopicPartition(topic, 0)
        self._consumer = AIOKafkaConsumer(
            **connection,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        Client.adopt(self._consumer._client)
        self.newest: PlanRecord | None = None
        self.news = asyncio.Event()
        """Set when a newer plan has been read; whoever acts on it clears it."""

    async def connect(self) -> None:
        """Connect. May be called again after an error."""
        await self._consumer.start()

    async def read_to_end(self) -> None:
        """Read all plans there are now. The last offset may be a commit marker, so positions are compared."""
        self._consumer.assign([self._partition])
        await self._consumer.seek_to_beginning(self._partition)
        end = (await self._consumer.end_offsets([self._partition]))[self._partition]
        while await self._consumer.position(self._partition) < end:
            await self._poll()

    async def follow(self) -> None:
        """Read on until cancelled. A broker that is away is waited for: the last plan stays in force."""
        while True:
            try:
                await self._poll()
            except KafkaError as away:
                if not away.retriable:
                    raise
                log.warning("plans cannot be read now: %s", away)
                await asyncio.sleep(AWAY_S)

    async def stop(self) -> None:
        """Disconnect."""
        await self._consumer.stop()

    async def _poll(self) -> None:
        batches = await self._consumer.getmany(self._partition, timeout_ms=POLL_MS)
        for record in batches.get(self._partition, ()):
            if record.value is not None:  # a tombstone withdraws nothing: the last plan stays in force
                self._take(record.offset, record.value)

    def _take(self, offset: int, value: bytes) -> None:
        plan = decode_plan(value)
        if isinstance(plan, str):
            log.warning("%s, offset %d is no plan and is skipped: %s", self._partition.topic, offset, plan)
        else:
            self._keep(plan)

    def learn(self, plan: PlanRecord) -> None:
        """Take a plan that another member has read, and this one has not."""
        if why_not(plan) is None and self._keep(plan):
            log.warning("plan %d was passed on by another member: %s cannot be read", plan.epoch, self._partition.topic)

    def _keep(self, plan: PlanRecord) -> bool:
        is_newer = self.newest is None or plan.epoch > self.newest.epoch
        if is_newer:
            self.newest = plan
            self.news.set()
        return is_newer
