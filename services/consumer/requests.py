"""Requests in versions that aiokafka does not support: fenced transactional commits, stable offsets, a topic's id."""

from collections.abc import Iterable
from typing import Any, Final

from aiokafka.errors import GroupLoadInProgressError, for_code
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from contracts.requests import TopicId, VersionedRequest, request_kind

UNSTABLE_OFFSET_COMMIT: Final = 88
UNKNOWN_LEADER_EPOCH: Final = -1
UNKNOWN_OFFSET: Final = -1
NULL: Final = -1

_TEXT: Final = CompactString("utf-8")
_TAGS: Final = ("tags", TaggedFields)
_OFFSET: Final = (("partition", Int32), ("offset", Int64), ("leader_epoch", Int32), ("metadata", _TEXT))


def _topics(*of_partition: Any) -> tuple[str, Any]:
    partitions = CompactArray(*of_partition, _TAGS) if len(of_partition) > 1 else CompactArray(*of_partition)
    return ("topics", CompactArray(("name", _TEXT), ("partitions", partitions), _TAGS))


_TXN_OFFSET_COMMIT: Final = request_kind(
    28,
    3,
    Schema(
        ("transactional_id", _TEXT), ("group_id", _TEXT), ("producer_id", Int64), ("producer_epoch", Int16),
        ("generation_id", Int32), ("member_id", _TEXT), ("group_instance_id", _TEXT), _topics(*_OFFSET), _TAGS,
    ),
    _topics(("partition", Int32), ("error_code", Int16)),
    _TAGS,
    is_flexible=True,
)  # fmt: skip
_OFFSET_FETCH: Final = request_kind(
    9,
    7,
    Schema(("group_id", _TEXT), _topics(Int32), ("require_stable", Boolean), _TAGS),
    _topics(*_OFFSET, ("error_code", Int16)),
    ("error_code", Int16),
    _TAGS,
    is_flexible=True,
)
_DESCRIBE_TOPIC: Final = request_kind(
    75,
    0,
    Schema(
        ("topics", CompactArray(("name", _TEXT), _TAGS)), ("response_partition_limit", Int32), ("cursor", Int8), _TAGS
    ),
    # The fields of the first topic up to its id; the rest of the answer is not read.
    ("topics", CompactArray(("error_code", Int16), ("name", _TEXT), ("topic_id", TopicId))),
    is_flexible=True,
)


def txn_offset_commit(
    producer: tuple[str, int, int],
    group: str,
    member: tuple[int, str],
    offsets: dict[TopicPartition, OffsetAndMetadata],
) -> VersionedRequest:
    """Return a request that adds offsets to a transaction. The group refuses it if `member` is outdated.

    producer: transactional id, producer id and epoch. member: generation and member id.
    """
    values: dict[TopicPartition, Any] = {
        at: (at.partition, entry.offset, UNKNOWN_LEADER_EPOCH, entry.metadata, {}) for at, entry in offsets.items()
    }
    name, *identity = producer
    return VersionedRequest(_TXN_OFFSET_COMMIT, name, group, *identity, *member, None, _by_topic(values), {})


def stable_offset_fetch(group: str, partitions: Iterable[TopicPartition]) -> VersionedRequest:
    """Return a query of a group's offsets. A partition in an open transaction gets UNSTABLE_OFFSET_COMMIT."""
    return VersionedRequest(_OFFSET_FETCH, group, _by_topic({at: at.partition for at in partitions}), True, {})


def describe_topic(topic: str) -> VersionedRequest:
    """Return a query of a topic's id and its first partition."""
    return VersionedRequest(_DESCRIBE_TOPIC, [(topic, {})], 1, NULL, {})


def stable_offsets(answer: Any, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets in an answer to `stable_offset_fetch`, without partitions that have none.

    Raises KafkaError: the group cannot return them now, or an open transaction may change one.
    """
    entries = [(TopicPartition(topic, entry[0]), entry) for topic, parts, _ in answer.topics for entry in parts]
    for code in (answer.error_code, *(entry[4] for _, entry in entries)):
        if code:
            raise GroupLoadInProgressError(group) if code == UNSTABLE_OFFSET_COMMIT else for_code(code)(group)
    return {at: OffsetAndMetadata(entry[1], entry[3]) for at, entry in entries if entry[1] != UNKNOWN_OFFSET}


def _by_topic(values: dict[TopicPartition, Any]) -> list[tuple[str, list[Any], dict[int, bytes]]]:
    topics: dict[str, list[Any]] = {}
    for at, value in values.items():
        topics.setdefault(at.topic, []).append(value)
    return [(topic, partitions, {}) for topic, partitions in topics.items()]
