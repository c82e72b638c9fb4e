"""Requests and messages of Kafka's group protocols.

Every broker since 2.4 supports these versions of the classic protocol, and every broker since 4.0 those of KIP-848.
"""

import struct
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Final, NamedTuple

from aiokafka.protocol.commit import OffsetFetchRequest_v3
from aiokafka.protocol.group import JoinGroupRequest_v5, SyncGroupRequest_v3
from aiokafka.protocol.types import (
    Array,
    Boolean,
    Bytes,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Schema,
    String,
    TaggedFields,
)

from contracts import plan
from contracts.requests import TopicId, request_kind

PLANNER: Final = plan.PLANNER
PROTOCOL_TYPE: Final = "consumer"
REQUEST_TIMEOUT_S: Final = 60.0
"""Longest wait for an answer. A rebalance lasts until its slowest member has rejoined."""

ANSWER_TIMEOUT_S: Final = 5.0
"""Longest wait for an answer that no other member delays."""

Partitions = dict[str, list[int]]
"""Topic → partitions."""

_TEXT: Final = String("utf-8")
_GROUP, _ERROR = ("group", _TEXT), ("error_code", Int16)
_MEMBER: Final = (("member_id", _TEXT), ("group_instance_id", _TEXT))
_DESCRIBED_MEMBER: Final = Array(
    *_MEMBER, ("client_id", _TEXT), ("client_host", _TEXT), ("member_metadata", Bytes), ("member_assignment", Bytes)
)  # fmt: skip
_DESCRIBED_GROUP: Final = Array(
    _ERROR, _GROUP, ("state", _TEXT), ("protocol_type", _TEXT), ("protocol", _TEXT), ("members", _DESCRIBED_MEMBER),
    ("authorized_operations", Int32),
)  # fmt: skip
HEARTBEAT: Final = request_kind(12, 3, Schema(_GROUP, ("generation_id", Int32), *_MEMBER), _ERROR)
JOIN, SYNC, COMMITTED = JoinGroupRequest_v5, SyncGroupRequest_v3, OffsetFetchRequest_v3
LEAVE: Final = request_kind(
    13, 3, Schema(_GROUP, ("members", Array(*_MEMBER))), _ERROR, ("members", Array(*_MEMBER, _ERROR))
)
DESCRIBE: Final = request_kind(
    15, 4, Schema(("groups", Array(_TEXT)), ("include_operations", Boolean)), ("groups", _DESCRIBED_GROUP)
)  # fmt: skip
_NAME, _TAGS = CompactString("utf-8"), ("tags", TaggedFields)
_NUMBERS: Final = CompactArray(Int32)
_PLACES: Final = CompactArray(("topic_id", TopicId), ("topic", _NAME), ("partitions", _NUMBERS), _TAGS)
_ASSIGNED_MEMBER: Final = CompactArray(
    ("member_id", _NAME), ("instance_id", _NAME), ("rack_id", _NAME), ("epoch", Int32), ("client_id", _NAME),
    ("client_host", _NAME), ("topics", CompactArray(_NAME)), ("regex", _NAME),
    ("places", Schema(("of", _PLACES), _TAGS)), ("target", Schema(("of", _PLACES), _TAGS)), _TAGS,
)  # fmt: skip
_ASSIGNED_GROUP: Final = CompactArray(
    _ERROR, ("message", _NAME), ("group", _NAME), ("state", _NAME), ("epoch", Int32), ("target_epoch", Int32),
    ("assignor", _NAME), ("members", _ASSIGNED_MEMBER), ("authorized_operations", Int32), _TAGS,
)  # fmt: skip
BEAT: Final = request_kind(
    68, 1,
    Schema(
        ("group", _NAME), ("member_id", _NAME), ("epoch", Int32), ("instance_id", _NAME), ("rack_id", _NAME),
        ("rebalance_timeout_ms", Int32), ("topics", CompactArray(_NAME)), ("regex", _NAME), ("assignor", _NAME),
        ("owned", CompactArray(Int8)), _TAGS,
    ),
    _ERROR, ("message", _NAME), ("member_id", _NAME), ("epoch", Int32), ("interval_ms", Int32), is_flexible=True,
)  # fmt: skip
"""Heartbeat of KIP-848, by which a member also joins and leaves. The assignment that ends the answer is not read."""
DESCRIBE_ASSIGNED: Final = request_kind(
    69, 0, Schema(("groups", CompactArray(_NAME)), ("include_operations", Boolean), _TAGS), ("groups", _ASSIGNED_GROUP),
    is_flexible=True,
)  # fmt: skip
_LISTED: Final = CompactArray(
    ("group", _NAME), ("protocol_type", _NAME), ("state", _NAME), ("type", _NAME), _TAGS
)  # fmt: skip
LIST: Final = request_kind(
    16, 5, Schema(("states", CompactArray(_NAME)), ("types", CompactArray(_NAME)), _TAGS), _ERROR, ("groups", _LISTED),
    is_flexible=True,
)  # fmt: skip
"""The groups of one coordinator."""

NO_TOPICS: Final = struct.pack(">hii", 0, 0, -1)
"""Subscription to nothing: version, number of topics, no user data."""


class Subscription(NamedTuple):
    """The topics of a member, and the partitions that it still claims (cooperative protocols)."""

    topics: frozenset[str] = frozenset()
    owned: Mapping[str, list[int]] = {}


def read_subscription(raw: bytes) -> Subscription:
    """Decode a member's subscription. A damaged or shortened one (kafka-go) is read as far as possible."""
    data = BytesIO(raw or b"")
    topics, owned = frozenset[str](), Partitions()
    try:
        version = Int16.decode(data)
        topics = frozenset(filter(None, [_TEXT.decode(data) for _ in range(Int32.decode(data))]))
        Bytes.decode(data)
        if version >= 1:
            owned = _read_partitions(data)
    except (ValueError, struct.error):
        pass
    return Subscription(topics, owned)


def pack_assignment(topics: Mapping[str, Iterable[int]]) -> bytes:
    """Return the message with a member's partitions."""
    parts = [struct.pack(">hi", 0, len(topics))]
    for topic, partitions in topics.items():
        numbers = sorted(partitions)
        parts += [_TEXT.encode(topic), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    return b"".join([*parts, struct.pack(">i", -1)])


def read_assignment(raw: bytes) -> Partitions:
    """Decode a member's partitions; empty for a member without any."""
    try:
        return _read_partitions(BytesIO(raw[2:])) if raw else {}
    except (ValueError, struct.error):
        return {}


def _read_partitions(data: BytesIO) -> Partitions:
    topics = [(_TEXT.decode(data), Array(Int32).decode(data)) for _ in range(Int32.decode(data))]
    return {topic: partitions or [] for topic, partitions in topics if topic}
