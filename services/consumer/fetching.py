"""What is fetched: aiokafka's assignment, changed in place, so that a partition that stays never notices a round."""

from collections.abc import Callable, Mapping, Set
from typing import Any, Final

from aiokafka.structs import OffsetAndMetadata, TopicPartition

from services.consumer.log_watch import Position
from services.consumer.requests import UNKNOWN_OFFSET

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


def _replace(assignment: Any, partition: TopicPartition, out_of_range: Callable[[int], None]) -> None:
    """Give the partition a fresh state: a response that is under way for the old one is thrown away."""
    old = assignment.state_value(partition)
    if old is not None:
        old.update_committed(OffsetAndMetadata(UNKNOWN_OFFSET, ""))  # whoever waits for it would wait for ever
    assignment._tp_state[partition] = Position(assignment, partition.partition, out_of_range)
