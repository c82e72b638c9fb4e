"""Polls events into the partition queues, and changes what is fetched.

aiokafka's assignment is changed in place, so that a partition that stays never notices a round. Here is also which of
Kafka's errors a replica waits out, and which end it.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping, Set
from typing import Any, Final

from aiokafka import errors
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from contracts.clock import now_us, steady_s
from services.consumer.interface import ReplicaError
from services.consumer.log_watch import Position
from services.consumer.partition_queue import PartitionQueues
from services.consumer.requests import UNKNOWN_OFFSET
from services.consumer.server import told

log = logging.getLogger(__name__)

POLL_MS: Final = 1000  # a poll ends as soon as something is there
TROUBLE_S: Final = 0.2
"""aiokafka has waited for its own retries already; this keeps a lasting trouble from turning into a busy loop."""
PATIENCE_S: Final = 30.0
"""How long an error that Kafka does not call passing is tried to be survived: as long as a broker takes to restart."""
FATAL: Final = (
    errors.AuthenticationFailedError, errors.AuthenticationMethodNotSupported,
    errors.ClusterAuthorizationFailedError, errors.GroupAuthorizationFailedError, errors.IllegalSaslStateError,
    errors.IncompatibleBrokerVersion, errors.InconsistentGroupProtocolError, errors.InvalidGroupIdError,
    errors.InvalidSessionTimeoutError, errors.InvalidTopicError, errors.KafkaConfigurationError,
    errors.SaslAuthenticationFailed, errors.SecurityDisabled, errors.TopicAuthorizationFailedError,
    errors.UnrecognizedBrokerVersion, errors.UnsupportedSaslMechanismError, errors.UnsupportedVersionError,
)  # fmt: skip
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
    records = getattr(fetched, "_partition_records", None)
    iterator = records._records_iterator if records is not None else None
    return iterator is not None and inspect.getgeneratorstate(iterator) == inspect.GEN_CLOSED


WAIT_MS: Final = 25
"""How long the broker may keep an empty fetch. What is not part of it, as its partition had enough waiting here or was
not polled yet, waits for its end …"""
IDLE_WAIT_MS: Final = 500
"""… which is nothing where nothing comes: there hundreds of members shall not keep a broker busy."""
QUIET_S: Final = 1.0
"""A fetch that was called back is surely answered by then, and the next one can be called back, too."""
NOWHERE: Final = -1
"""Position of a partition that was let go. No fetch has it, so no response fits. Without any position the fetcher's
search for positions, if it is under way, would wait for ever for one that nobody looks up any more."""


def change(
    consumer: Any,
    partitions: Set[TopicPartition],
    positions: Mapping[TopicPartition, int],
    out_of_range: Callable[[int], None],
) -> bool:
    """Fetch exactly `partitions`, those in `positions` from there; return whether the assignment is a new one.

    aiokafka replaces its Assignment at every rebalance, and with it throws away what it has fetched and the fetch that
    is under way. Here the one Assignment is changed in place: partitions that stay never notice. Those that are new and
    have no position begin where aiokafka finds the group's committed offset, or its reset.
    """
    state, fetcher = consumer._subscription, consumer._fetcher
    subscription = state.subscription
    fresh = subscription.assignment is None
    if fresh:
        state.assign_from_subscribed(set(partitions))
    assignment = subscription.assignment
    for left in assignment.tps - partitions:
        _replace(assignment, left, out_of_range)
        assignment.state_value(left).seek(NOWHERE)
        fetcher._records.pop(left, None)
    for new in partitions if fresh else partitions - assignment.tps:
        _replace(assignment, new, out_of_range)
    assignment._topic_partitions = frozenset(partitions)
    for partition, offset in positions.items():
        assignment.state_value(partition).seek(offset)
        fetcher._records.pop(partition, None)
    subscription._reassignment_in_progress = False
    state._notify_assignment_waiters()
    fetcher._notify(fetcher._wait_consume_future)
    return fresh


def recall(consumer: Any) -> None:
    """Fetch at once what was taken."""
    consumer._client.recall()
    consumer._fetcher._fetch_max_wait_ms = WAIT_MS


def wait(consumer: Any, *, idle: bool) -> None:
    """Have empty fetches kept for long or briefly. idle: a whole poll has found nothing, and nothing is held back."""
    is_quiet = idle and steady_s() - consumer._client.recalled_s > QUIET_S
    consumer._fetcher._fetch_max_wait_ms = IDLE_WAIT_MS if is_quiet else WAIT_MS


def _replace(assignment: Any, partition: TopicPartition, out_of_range: Callable[[int], None]) -> None:
    """Give the partition a fresh state: a response that is under way for the old one is thrown away."""
    old = assignment.state_value(partition)
    if old is not None:
        old.update_committed(OffsetAndMetadata(UNKNOWN_OFFSET, ""))  # whoever waits for it would wait for ever
    assignment._tp_state[partition] = Position(assignment, partition.partition, out_of_range)
