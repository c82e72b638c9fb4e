"""Read every committed offset of a group from the topic in which its coordinator stores them.

An AdminClient cannot be used, because librdkafka 2.16 crashes if the coordinator has just moved.
"""

import struct
from itertools import pairwise

from kafka_helpers import read_all

OFFSETS = "__consumer_offsets"
OFFSET_KEYS = {0, 1}
"""Key versions of records that contain an offset. Other versions are about the group."""


def committed_offsets(kafka: str, group: str) -> dict[int, list[int]]:
    """Return partition → committed offsets, in order of time. The group must read only one topic."""
    history: dict[int, list[int]] = {}
    for record in read_all(kafka, "", OFFSETS):
        key, value = record.key(), record.value()
        version, length = struct.unpack_from(">hh", key)
        if version not in OFFSET_KEYS or value is None or key[4 : 4 + length] != group.encode():
            continue
        (partition,) = struct.unpack_from(">i", key, len(key) - 4)
        (offset,) = struct.unpack_from(">q", value, 2)
        history.setdefault(partition, []).append(offset)
    return history


def assert_no_commit_goes_back(kafka: str, group: str) -> dict[int, list[int]]:
    """Return the history. Fail if a commit of `group` is lower than an earlier one of its partition."""
    history = committed_offsets(kafka, group)
    assert history, f"{group} has committed"
    for partition, offsets in history.items():
        back = [(before, after) for before, after in pairwise(offsets) if after < before]
        assert not back, f"commits of partition {partition} went back: {back}"
    return history
