"""Polls events into the partition queues, and changes which partitions aiokafka fetches.

aiokafka's assignment is changed in place, so that a rebalance does not interrupt partitions that stay. This module also
decides which Kafka errors a replica retries and which end it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Set
from typing import Any, Final

from aiokafka import errors
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from contracts.clock import monotonic_s, now_us
from contracts.unpacking import poll_limit
from services.consumer.interface import ReplicaError
from services.consumer.log_watch import Position
from services.consumer.partition_queue import PartitionQueues
from services.consumer.requests import UNKNOWN_OFFSET
from services.consumer.server import describe_error

log = logging.getLogger(__name__)

POLL_MS: Final = 1000  # a poll ends as soon as a record has arrived
FULL_PAUSE_S: Final = 0.01  # between two checks whether enough of the backlog was served
RETRY_PAUSE_S: Final = 0.2
"""Pause after an error, on top of aiokafka's own retries, so that a lasting error does not cause a busy loop."""
MAX_PROBLEM_S: Final = 30.0
"""How long a non-retriable error is retried: about as long as a broker takes to restart."""
FATAL_ERRORS: Final = (
    errors.AuthenticationFailedError, errors.AuthenticationMethodNotSupported,
    errors.ClusterAuthorizationFailedError, errors.GroupAuthorizationFailedError, errors.IllegalSaslStateError,
    errors.IncompatibleBrokerVersion, errors.InconsistentGroupProtocolError, errors.InvalidGroupIdError,
    errors.InvalidSessionTimeoutError, errors.InvalidTopicError, errors.KafkaConfigurationError,
    errors.SaslAuthenticationFailed, errors.SecurityDisabled, errors.TopicAuthorizationFailedError,
    errors.UnrecognizedBrokerVersion, errors.UnsupportedSaslMechanismError, errors.UnsupportedVersionError,
)  # fmt: skip
"""Errors of rights, versions and settings, which end the replica at once because no retry helps."""


class Poller:
    """Polls the consumer into the partition queues."""

    def __init__(
        self, consumer: Any, queues: PartitionQueues, topic: str, clock: Callable[[], float] = monotonic_s
    ) -> None:
        self._consumer, self._queues, self._topic, self._clock = consumer, queues, topic, clock
        self._problem_since_s: float | None = None
        queues.on_full = self._pause_or_resume

    async def run(self) -> None:
        """Poll until cancelled. Raises KafkaError or ReplicaError for an error that retries do not fix."""
        while True:
            try:
                if not (free_bytes := self._queues.free_bytes):
                    await asyncio.sleep(FULL_PAUSE_S)
                    continue
                with poll_limit(free_bytes):
                    batches = await self._consumer.getmany(timeout_ms=POLL_MS)
            except errors.KafkaError as error:
                if self._is_fatal(error):
                    raise
                log.warning("Poll failed, retrying: %r", error)
                self._fetch_again()
                await asyncio.sleep(RETRY_PAUSE_S)
                continue
            except Exception as error:  # of one of aiokafka's own tasks
                raise ReplicaError(f"Kafka client failed ({describe_error(error)}); restart the replica") from error
            self._problem_since_s = None
            polled_us = now_us()
            for at, events in batches.items():
                self._queues.put(at.partition, events, polled_us)
            self._consumer._client.is_whole = not (self._queues.full_partitions or self._consumer._fetcher._records)

    def _is_fatal(self, error: errors.KafkaError) -> bool:
        if isinstance(error, FATAL_ERRORS) or self._consumer._coordinator._coordination_task.done():
            return True
        if error.retriable:
            return False
        if self._problem_since_s is None:
            self._problem_since_s = self._clock()
        return self._clock() - self._problem_since_s > MAX_PROBLEM_S

    def _fetch_again(self) -> None:
        """Continue each partition behind its last polled record: a failed poll may have lost others."""
        for partition, queue in self._queues.items():
            at = TopicPartition(self._topic, partition)
            if queue.next_fetch_offset is not None and not queue.cut_off_reason and at in self._consumer.assignment():
                self._consumer.seek(at, queue.next_fetch_offset)

    def _pause_or_resume(self, partition: int, is_full: bool) -> None:
        at = TopicPartition(self._topic, partition)
        if at in self._consumer.assignment():
            pause_or_resume = self._consumer.pause if is_full else self._consumer.resume
            pause_or_resume(at)


NO_POSITION: Final = -1
"""Position of a removed partition. No fetch has it, so every response for the partition is ignored. Without one, a
search for positions in progress would wait for ever for this partition."""


def change_assignment(
    consumer: Any,
    partitions: Set[TopicPartition],
    positions: Mapping[TopicPartition, int],
    on_out_of_range: Callable[[int], None],
) -> bool:
    """Fetch exactly `partitions`, starting at `positions` where given. Return whether a new assignment was created.

    aiokafka replaces its Assignment at every rebalance, and discards all fetched records and the fetch in progress.
    Here the Assignment is changed in place, which does not interrupt partitions that stay. New partitions without a
    position begin at the committed offset that aiokafka finds, or as its offset reset decides.
    """
    state, fetcher = consumer._subscription, consumer._fetcher
    subscription = state.subscription
    is_new = subscription.assignment is None
    if is_new:
        state.assign_from_subscribed(set(partitions))
    assignment = subscription.assignment
    for removed in assignment.tps - partitions:
        _replace(assignment, removed, on_out_of_range)
        assignment.state_value(removed).seek(NO_POSITION)
        fetcher._records.pop(removed, None)
    for added in partitions if is_new else partitions - assignment.tps:
        _replace(assignment, added, on_out_of_range)
    assignment._topic_partitions = frozenset(partitions)
    for partition, offset in positions.items():
        assignment.state_value(partition).seek(offset)
        fetcher._records.pop(partition, None)
    subscription._reassignment_in_progress = False
    state._notify_assignment_waiters()
    fetcher._notify(fetcher._wait_consume_future)
    return is_new


def _replace(assignment: Any, partition: TopicPartition, on_out_of_range: Callable[[int], None]) -> None:
    """Give the partition a new state, so that responses for the old one are ignored."""
    old = assignment.state_value(partition)
    if old is not None:
        old.update_committed(OffsetAndMetadata(UNKNOWN_OFFSET, ""))  # else its waiters would wait for ever
    assignment._tp_state[partition] = Position(assignment, partition.partition, on_out_of_range)
