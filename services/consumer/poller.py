"""Polls events into the partition queues; says which of Kafka's errors a replica waits out, and which end it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from aiokafka import errors
from aiokafka.structs import TopicPartition

from contracts.clock import now_us, steady_s
from services.consumer.dead_letters import told
from services.consumer.interface import ReplicaError
from services.consumer.partition_queue import PartitionQueues

log = logging.getLogger(__name__)

POLL_MS: Final = 1000
"""A poll ends as soon as something is there."""
TROUBLE_S: Final = 0.2
"""aiokafka has waited for its own retries already; this keeps a lasting trouble from turning into a busy loop."""
PATIENCE_S: Final = 30.0
"""How long an error that Kafka does not call passing is tried to be survived: as long as a broker takes to restart."""
FATAL: Final = (
    errors.AuthenticationFailedError,
    errors.AuthenticationMethodNotSupported,
    errors.ClusterAuthorizationFailedError,
    errors.GroupAuthorizationFailedError,
    errors.IllegalSaslStateError,
    errors.IncompatibleBrokerVersion,
    errors.InconsistentGroupProtocolError,
    errors.InvalidGroupIdError,
    errors.InvalidSessionTimeoutError,
    errors.InvalidTopicError,
    errors.KafkaConfigurationError,
    errors.SaslAuthenticationFailed,
    errors.SecurityDisabled,
    errors.TopicAuthorizationFailedError,
    errors.UnrecognizedBrokerVersion,
    errors.UnsupportedSaslMechanismError,
    errors.UnsupportedVersionError,
)
"""Rights, versions and settings: somebody has to change them."""


class Poller:
    """The one reader of the consumer."""

    def __init__(
        self, consumer: Any, queues: PartitionQueues, topic: str, clock: Callable[[], float] = steady_s
    ) -> None:
        self._consumer = consumer
        self._queues = queues
        self._topic = topic
        self._clock = clock
        self._trouble_since_s: float | None = None
        queues.on_full = self._limit

    async def run(self) -> None:
        """Poll until cancelled. Raises KafkaError or ReplicaError: no waiting mends it."""
        while True:
            try:
                batches = await self._consumer.getmany(timeout_ms=POLL_MS)
            except errors.KafkaError as trouble:
                if self._is_over(trouble):
                    raise
                log.warning("polling is interrupted: %r", trouble)
                await asyncio.sleep(TROUBLE_S)
                continue
            except Exception as unforeseen:  # of aiokafka's own tasks
                raise ReplicaError(f"the Kafka client has failed ({told(unforeseen)}); restart me") from unforeseen
            self._trouble_since_s = None
            received_us = now_us()
            for at, records in batches.items():
                self._queues.put(at.partition, records, received_us)

    def _is_over(self, trouble: errors.KafkaError) -> bool:
        """Return whether the replica cannot go on: a fatal error, a dead coordination, or one that does not pass."""
        if isinstance(trouble, FATAL) or self._consumer._coordinator._coordination_task.done():
            return True
        if trouble.retriable:
            return False
        if self._trouble_since_s is None:
            self._trouble_since_s = self._clock()
        return self._clock() - self._trouble_since_s > PATIENCE_S

    def _limit(self, partition: int, full: bool) -> None:
        at = TopicPartition(self._topic, partition)
        if at not in self._consumer.assignment():
            return
        if full:
            self._consumer.pause(at)
        else:
            self._consumer.resume(at)
