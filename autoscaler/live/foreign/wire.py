"""Requests and messages of Kafka's classic group protocol, in versions that every broker since 2.4 supports."""

import struct
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any, Final, NamedTuple

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.group import JoinGroupRequest_v5, SyncGroupRequest_v3
from aiokafka.protocol.types import Array, Boolean, Bytes, Int16, Int32, Int64, Schema, String

PLANNER: Final = "tailpack-planner"
"""Client id and instance id of the autoscaler in the group. A second autoscaler replaces the first under this id."""
PROTOCOL_TYPE: Final = "consumer"
REQUEST_TIMEOUT_S: Final = 60.0
"""Longest wait for an answer. A rebalance lasts until its slowest member has rejoined."""

ANSWER_TIMEOUT_S: Final = 5.0
"""Longest wait for an answer that no other member delays."""

Partitions = dict[str, list[int]]
"""Topic → partitions."""


def _struct(key: int, version: int, request: Schema, *response: Any) -> Any:
    same = {"API_KEY": key, "API_VERSION": version}
    answer = type("Answer", (Response,), same | {"SCHEMA": Schema(("throttle_time_ms", Int32), *response)})
    return type("RequestOfVersion", (RequestStruct,), same | {"RESPONSE_TYPE": answer, "SCHEMA": request})


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
_COMMIT: Final = (
    ("partition", Int32), ("offset", Int64), ("leader_epoch", Int32), ("metadata", _TEXT), _ERROR
)  # fmt: skip
HEARTBEAT: Final = _struct(12, 3, Schema(_GROUP, ("generation_id", Int32), *_MEMBER), _ERROR)
JOIN, SYNC = JoinGroupRequest_v5, SyncGroupRequest_v3
LEAVE: Final = _struct(
    13, 3, Schema(_GROUP, ("members", Array(*_MEMBER))), _ERROR, ("members", Array(*_MEMBER, _ERROR))
)
DESCRIBE: Final = _struct(
    15, 4, Schema(("groups", Array(_TEXT)), ("include_operations", Boolean)), ("groups", _DESCRIBED_GROUP)
)  # fmt: skip
COMMITTED: Final = _struct(
    9,
    5,
    Schema(_GROUP, ("topics", Array(("topic", _TEXT), ("partitions", Array(Int32))))),
    ("topics", Array(("topic", _TEXT), ("partitions", Array(*_COMMIT)))),
    _ERROR,
)


class VersionedRequest(Request[RequestStruct]):  # type: ignore[misc]  # aiokafka ships no types
    """A request of one kind, such as JOIN. values: fields in the order of its schema."""

    API_KEY = 0

    def __init__(self, kind: Any, *values: Any) -> None:
        self.API_KEY, self._CLASSES = kind.API_KEY, (kind,)
        self._values = values

    def build(self, request_struct_class: Any) -> Any:
        """Return the request to send."""
        return request_struct_class(*self._values)


NO_TOPICS: Final = struct.pack(">hii", 0, 0, -1)
"""Subscription to nothing: version, number of topics, no user data."""


class Subscription(NamedTuple):
    """The topics of a member, and the partitions that it still claims (cooperative protocols)."""

    topics: frozenset[str] = frozenset()
    owned: Mapping[str, list[int]] = {}


def read_subscription(raw: bytes) -> Subscription:
    """Decode a member's subscription. Damaged and shortened ones (kafka-go) are read as far as possible."""
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
