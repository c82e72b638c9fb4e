"""Two requests in versions that aiokafka does not know: offsets fenced by membership, and offsets that last."""

from typing import Any, Final

from aiokafka.errors import GroupLoadInProgressError, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)
from aiokafka.structs import OffsetAndMetadata, TopicPartition

UNSTABLE_OFFSET_COMMIT: Final = 88
UNKNOWN_LEADER_EPOCH: Final = -1
UNKNOWN_OFFSET: Final = -1
_TEXT: Final = CompactString("utf-8")
_TAGS: Final = ("tags", TaggedFields)


class _TxnOffsetCommitResponse(Response):  # type: ignore[misc]  # aiokafka ships no types
    API_KEY = 28
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("name", _TEXT),
                ("partitions", CompactArray(("partition", Int32), ("error_code", Int16), _TAGS)),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _TxnOffsetCommitStruct(RequestStruct):  # type: ignore[misc]
    API_KEY = 28
    API_VERSION = 3
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _TxnOffsetCommitResponse
    SCHEMA = Schema(
        ("transactional_id", _TEXT),
        ("group_id", _TEXT),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("generation_id", Int32),
        ("member_id", _TEXT),
        ("group_instance_id", _TEXT),
        (
            "topics",
            CompactArray(
                ("name", _TEXT),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32), ("offset", Int64), ("leader_epoch", Int32), ("metadata", _TEXT), _TAGS
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class TxnOffsetCommit(Request[_TxnOffsetCommitStruct]):  # type: ignore[misc]
    """Adds offsets to a transaction in the name of a member: refused once the group is in another generation.

    producer: its transactional id, producer id and epoch. member: generation and member id.
    """

    API_KEY = 28

    def __init__(
        self,
        producer: tuple[str, int, int],
        group: str,
        member: tuple[int, str],
        offsets: dict[TopicPartition, OffsetAndMetadata],
    ) -> None:
        self._producer = producer
        self._group = group
        self._member = member
        self._offsets = offsets

    def build(self, request_struct_class: Any) -> Any:
        """Return what is sent."""
        topics: list[Any] = [
            (topic, [(p, one.offset, UNKNOWN_LEADER_EPOCH, one.metadata, {}) for p, one in partitions], {})
            for topic, partitions in _by_topic(self._offsets)
        ]
        name, *identity = self._producer
        return request_struct_class(name, self._group, *identity, *self._member, None, topics, {})


class _OffsetFetchResponse(Response):  # type: ignore[misc]
    API_KEY = 9
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("name", _TEXT),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", _TEXT),
                        ("error_code", Int16),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        ("error_code", Int16),
        _TAGS,
    )


class _OffsetFetchStruct(RequestStruct):  # type: ignore[misc]
    API_KEY = 9
    API_VERSION = 7
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _OffsetFetchResponse
    SCHEMA = Schema(
        ("group_id", _TEXT),
        ("topics", CompactArray(("name", _TEXT), ("partitions", CompactArray(Int32)), _TAGS)),
        ("require_stable", Boolean),
        _TAGS,
    )


class StableOffsetFetch(Request[_OffsetFetchStruct]):  # type: ignore[misc]
    """Asks for a group's offsets; of a partition in an open transaction the answer is UNSTABLE_OFFSET_COMMIT."""

    API_KEY = 9

    def __init__(self, group: str, partitions: dict[TopicPartition, None]) -> None:
        self._group = group
        self._partitions = partitions

    def build(self, request_struct_class: Any) -> Any:
        """Return what is sent."""
        topics: list[Any] = [
            (topic, [p for p, _ in partitions], {}) for topic, partitions in _by_topic(self._partitions)
        ]
        return request_struct_class(self._group, topics, True, {})


def stable_offsets(answer: Any, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets of an answer to StableOffsetFetch; a partition that has none is left out.

    Raises KafkaError: the group does not say now, or a transaction may still change one of them.
    """
    places = [(TopicPartition(topic, each[0]), each) for topic, partitions, _ in answer.topics for each in partitions]
    for code in (answer.error_code, *(each[4] for _, each in places)):
        if code:
            raise GroupLoadInProgressError(group) if code == UNSTABLE_OFFSET_COMMIT else for_code(code)(group)
    return {at: OffsetAndMetadata(each[1], each[3]) for at, each in places if each[1] != UNKNOWN_OFFSET}


def _by_topic(values: dict[TopicPartition, Any]) -> list[tuple[str, list[tuple[int, Any]]]]:
    topics: dict[str, list[tuple[int, Any]]] = {}
    for at, value in values.items():
        topics.setdefault(at.topic, []).append((at.partition, value))
    return list(topics.items())
