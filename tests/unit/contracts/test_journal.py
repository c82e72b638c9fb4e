"""What is read is what was written, whatever changed, was lost or was too large."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unfolded import entries

from contracts import journal
from contracts.journal import JournalDecoder, JournalEncoder, JournalEntry, PartitionState, PlanWritten, TickRecord

DAY_TICKS = 86_400


def tick(number: int, partitions: Sequence[PartitionState], reason: str = "nothing to do") -> TickRecord:
    return TickRecord(
        at_us=number * 1_000_000, tick=number, policy="linear", action="no-change", reason=reason, service_rate=200.0,
        partitions=tuple(partitions), ready_replicas=2, requested_replicas=2, planned_replicas=2, epoch=1,
    )  # fmt: skip


def seen(lags: Sequence[int]) -> list[PartitionState]:
    return [
        PartitionState(partition=number, arrival_rate=lag / 2, lag=lag, owner=f"payment-{number % 2}")
        for number, lag in enumerate(lags)
    ]


def written(folder: JournalEncoder, entry: JournalEntry) -> list[bytes]:
    records = folder.records(entry)
    assert all(len(record.decode()) <= 2 * journal.MAX_RECORD_CHARS + 200 for record in records)
    return records


ticks = st.lists(st.lists(st.integers(0, 2), max_size=6).map(seen), max_size=30).map(
    lambda all_seen: [tick(number, partitions) for number, partitions in enumerate(all_seen)]
)


@given(ticks)
def test_ticks_are_read_as_they_were_taken(taken: list[TickRecord]) -> None:
    folder = JournalEncoder()
    assert entries(record for one in taken for record in folder.records(one)) == taken


@given(ticks, st.data())
def test_after_a_loss_ticks_are_right_or_say_that_they_do_not_know(
    taken: list[TickRecord], data: st.DataObject
) -> None:
    folder, reader = JournalEncoder(), JournalDecoder()
    for one in taken:
        (record,) = folder.records(one)
        if data.draw(st.booleans()):
            if data.draw(st.booleans()):
                folder.lost()  # the writer is told, sooner or later
            continue
        assert reader.decode(record) in (one, msgspec.structs.replace(one, partitions=()))


def test_who_begins_in_the_middle_soon_knows_everything() -> None:
    folder, reader = JournalEncoder(), JournalDecoder()
    taken = [tick(number, seen([number % 3] * 50)) for number in range(40)]
    records = [folder.records(one)[0] for one in taken]
    read = [reader.decode(record) for record in records[7:]]
    known = [bool(isinstance(one, TickRecord) and one.partitions) for one in read]
    assert known == sorted(known), "once known, always known"
    assert sum(known) > len(known) - 5


@pytest.mark.parametrize("count", [11_600, 200_000])
def test_what_is_too_large_for_a_record_comes_in_pieces(count: int) -> None:
    owners = {number: f"payment-{number % 200}" for number in range(count)}
    plan = PlanWritten(
        at_us=1, epoch=1, action="up", reason="größer", replicas=("payment-0",), assignment=owners, moved=0
    )
    whole = tick(1, seen([number % 7 for number in range(count)]))
    folder = JournalEncoder()
    records = [record for one in (whole, plan) for record in written(folder, one)]
    assert len(records) > 2
    assert entries(records) == [whole, plan]
    assert entries(records[1:]) == [plan], "a piece is lost, and with it its record alone"
    assert entries(records[:2] + records[3:]) == [plan]
