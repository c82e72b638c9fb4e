"""Every offset a group ever committed, in order, read from the topic in which its coordinator keeps them.

Asking the coordinator by an AdminClient would not do: librdkafka 2.16 crashes when the coordinator has just moved.
"""

import struct
from itertools import pairwise

from kafka_helpers import read_all

OFFSETS = "__consumer_offsets"
OFFSET_KEYS = {0, 1}
"""Key versions of records about offsets; other versions are about the group."""


def committed_offsets(kafka: str, group: str) -> dict[int, list[int]]:
    """Partition → offsets in the order of their commits. For groups of one topic."""
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
    """Fail when any commit of `group` lies before an earlier one of the same partition; return the history."""
    history = committed_offsets(kafka, group)
    assert history, f"{group} has committed"
    for partition, offsets in history.items():
        back = [(before, after) for before, after in pairwise(offsets) if after < before]
        assert not back, f"commits of partition {partition} went back: {back}"
    return history
