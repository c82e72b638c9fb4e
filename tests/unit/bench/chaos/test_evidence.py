"""Kafka's records of groups and offsets are read by their bytes; steps of the clock are taken out of stamps."""

import struct

import pytest

from bench.chaos.evidence import Bytes, _members, true_s


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def group(*members: tuple[str, str], leader: str, version: int = 3) -> bytes:
    head = struct.pack(">h", version) + text("consumer") + struct.pack(">i", 7) + text("plan") + text(leader)
    each = b"".join(
        text(member) + struct.pack(">h", -1) + text(client) + text("/127.0.0.1") + struct.pack(">ii", 10_000, 2000)
        + blob(b"subscribed") + blob(b"")
        for member, client in members
    )  # fmt: skip
    return head + struct.pack(">q", 1) + struct.pack(">i", len(members)) + each


def test_the_members_of_a_generation_go_by_their_names() -> None:
    value = group(("payment-0-uuid", "payment-0"), ("payment-1-uuid", "payment-1"), leader="payment-1-uuid")
    found = _members(Bytes(value), 12.5)
    assert (found.at_s, found.generation, found.leader) == (12.5, 7, "payment-1")
    assert found.names == {"payment-0", "payment-1"}


def test_a_group_may_be_empty() -> None:
    assert _members(Bytes(group(leader="")), 1.0).names == frozenset()


def test_a_record_of_another_version_ends_the_suite_rather_than_be_misread() -> None:
    with pytest.raises(RuntimeError, match="version 4"):
        _members(Bytes(group(leader="", version=4)), 1.0)


@pytest.mark.parametrize("hours", [-1, 0, 1, 2])
def test_whole_hours_are_taken_out_of_a_stamp(hours: int) -> None:
    now_s = 1_700_000_000.0
    assert true_s(int((now_s - 42.5 + 3600 * hours) * 1e6), now_s) == pytest.approx(now_s - 42.5)
