"""What is fetched: aiokafka's assignment, changed in place, so that a partition that stays never notices a round."""

from collections.abc import Callable, Mapping, Set
from typing import Any, Final

from aiokafka.structs import OffsetAndMetadata, TopicPartition

from contracts.clock import steady_s
from services.consumer.log_watch import Position
from services.consumer.requests import UNKNOWN_OFFSET

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
