"""Polls events into the partition queues; says which of Kafka's errors a replica waits out, and which end it."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, Final

from aiokafka import errors
from aiokafka.structs import TopicPartition

from contracts.clock import now_us, steady_s
from services.consumer.dead_letters import told
from services.consumer.fetching import wait
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
                if isinstance(trouble, errors.UnsupportedCodecError) and self._leave_unreadable(trouble):
                    continue
                if self._is_over(trouble):
                    raise
                log.warning("polling is interrupted: %r", trouble)
                await asyncio.sleep(TROUBLE_S)
                continue
            except Exception as unforeseen:
                if not self._leave_unreadable(unforeseen):  # it came from aiokafka's own tasks
                    raise ReplicaError(f"the Kafka client has failed ({told(unforeseen)}); restart me") from unforeseen
                continue
            self._trouble_since_s = None
            wait(self._consumer, idle=not batches and not self._queues.full)
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

    def _leave_unreadable(self, wrong: Exception) -> bool:
        """Cut off partitions with a record that the client cannot parse; return whether there are any.

        What other partitions handed to the poll that failed is gone with it: they are fetched again.
        """
        fetched = self._consumer._fetcher._records
        unreadable = {at: one._partition_records.next_fetch_offset for at, one in fetched.items() if _has_failed(one)}
        for at, offset in unreadable.items():
            del fetched[at]
            self._consumer.pause(at)
            if at.partition in self._queues.held:
                reason = f"the client cannot read the record at offset {offset}, or one after it ({told(wrong)})"
                self._queues.cut_off(at.partition, reason, for_good=True)
        if unreadable:
            for at in self._consumer.assignment() - unreadable.keys():
                queue = self._queues[at.partition] if at.partition in self._queues.held else None
                if queue is not None and queue.expected is not None and not queue.cut_off:
                    self._consumer.seek(at, queue.expected)
                elif queue is not None and not queue.cut_off:  # nothing of it was polled: begin again
                    self._consumer.pause(at)
                    self._consumer._coordinator.out_of_range(at.partition)
        return bool(unreadable)

    def _limit(self, partition: int, full: bool) -> None:
        at = TopicPartition(self._topic, partition)
        if at not in self._consumer.assignment():
            return
        if full:
            self._consumer.pause(at)
        else:
            self._consumer.resume(at)


def _has_failed(fetched: Any) -> bool:
    """Return whether an exception ended the reading of what was fetched of a partition."""
    records = getattr(fetched, "_partition_records", None)
    iterator = records._records_iterator if records is not None else None
    return iterator is not None and inspect.getgeneratorstate(iterator) == inspect.GEN_CLOSED
