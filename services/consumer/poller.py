"""Fills the lanes from the broker, and stops fetching what is not handled as quickly as it comes."""

import asyncio
import logging
from typing import Any, Final

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from aiokafka.structs import TopicPartition

from contracts.clock import now_us
from services.consumer.lanes import Lanes

log = logging.getLogger(__name__)

POLL_MS: Final = 1000
"""A poll ends as soon as something is there."""
TROUBLE_S: Final = 0.2
"""aiokafka has waited for its own retries already; this keeps a lasting trouble from turning into a busy loop."""
FATAL: Final = (GroupAuthorizationFailedError, TopicAuthorizationFailedError, UnsupportedVersionError)


class Poller:
    """The one reader of the consumer."""

    def __init__(self, consumer: Any, lanes: Lanes, topic: str) -> None:
        self._consumer = consumer
        self._lanes = lanes
        self._topic = topic
        lanes.on_full = self._limit

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            try:
                batches = await self._consumer.getmany(timeout_ms=POLL_MS)
            except KafkaError as trouble:
                if isinstance(trouble, FATAL) or self._consumer._coordinator._coordination_task.done():
                    raise
                log.warning("polling is interrupted: %s", trouble)
                await asyncio.sleep(TROUBLE_S)
                continue
            received_us = now_us()
            for at, records in batches.items():
                self._lanes.put(at.partition, records, received_us)

    def _limit(self, partition: int, full: bool) -> None:
        at = TopicPartition(self._topic, partition)
        if at not in self._consumer.assignment():
            return
        if full:
            self._consumer.pause(at)
        else:
            self._consumer.resume(at)
