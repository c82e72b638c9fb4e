"""Journal records decode to the entries that were encoded: changes, losses, large records."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_entries import entries

from contracts import journal
from contracts.journal import JournalDecoder, JournalEncoder, JournalEntry, PartitionState, PlanWritten, TickRecord


def tick(number: int, partitions: Sequence[PartitionState], reason: str = "nothing to do") -> TickRecord:
    return TickRecord(
        at_us=number * 1_000_000, tick=number, policy="linear", action="no-change", reason=reason, service_rate=200.0,
        partitions=tuple(partitions), ready_replicas=2, requested_replicas=2, planned_replicas=2, epoch=1,
    )  # fmt: skip


def states(lags: Sequence[int]) -> list[PartitionState]:
    return [
        PartitionState(partition=number, arrival_rate=lag / 2, lag=lag, owner=f"payment-{number % 2}")
        for number, lag in enumerate(lags)
    ]


def encode(encoder: JournalEncoder, entry: JournalEntry) -> list[bytes]:
    records = encoder.records(entry)
    assert all(len(record.decode()) <= 2 * journal.MAX_RECORD_CHARS + 200 for record in records)
    return records


ticks = st.lists(st.lists(st.integers(0, 2), max_size=6).map(states), max_size=30).map(
    lambda all_states: [tick(number, partitions) for number, partitions in enumerate(all_states)]
)


@given(ticks)
def test_decoded_ticks_equal_the_encoded_ones(taken: list[TickRecord]) -> None:
    encoder = JournalEncoder()
    assert entries(record for one in taken for record in encoder.records(one)) == taken


@given(ticks, st.data())
def test_after_a_loss_a_tick_is_right_or_has_no_partitions(taken: list[TickRecord], data: st.DataObject) -> None:
    encoder, reader = JournalEncoder(), JournalDecoder()
    for one in taken:
        (record,) = encoder.records(one)
        if data.draw(st.booleans()):
            if data.draw(st.booleans()):
                encoder.lost()  # the writer learns of the loss, sooner or later
            continue
        assert reader.decode(record) in (one, msgspec.structs.replace(one, partitions=()))


def test_a_record_of_another_version_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="version 3"):
        JournalDecoder().decode(msgspec.json.encode(msgspec.structs.replace(tick(1, states([3])), v=3)))


def test_a_reader_that_starts_in_the_middle_soon_has_all_partitions() -> None:
    encoder, reader = JournalEncoder(), JournalDecoder()
    taken = [tick(number, states([number % 3] * 50)) for number in range(40)]
    records = [encoder.records(one)[0] for one in taken]
    read = [reader.decode(record) for record in records[7:]]
    known = [bool(isinstance(one, TickRecord) and one.partitions) for one in read]
    assert known == sorted(known), "once known, always known"
    assert sum(known) > len(known) - 5


def test_a_large_comparison_does_not_change_which_ticks_are_full() -> None:
    def full(size: int) -> list[bool]:
        encoder = JournalEncoder()
        taken = (tick(number, states([number % 3] * 5 + [0] * 45)) for number in range(40))
        compared = (msgspec.structs.replace(one, comparison="x" * size * (one.tick % 5 == 0)) for one in taken)
        return [b'"kind":"tick"' in encoder.records(one)[0] for one in compared]

    assert full(20_000) == full(0)
    assert 2 < sum(full(0)) < 20


@pytest.mark.parametrize("count", [11_600, 200_000])
def test_a_large_record_is_split_into_parts(count: int) -> None:
    owners = {number: f"payment-{number % 200}" for number in range(count)}
    plan = PlanWritten(
        at_us=1, epoch=1, action="up", reason="größer", replicas=("payment-0",), assignment=owners, moved=0
    )
    whole = tick(1, states([number % 7 for number in range(count)]))
    encoder = JournalEncoder()
    records = [record for one in (whole, plan) for record in encode(encoder, one)]
    assert len(records) > 2
    assert entries(records) == [whole, plan]
    assert entries(records[1:]) == [plan], "a lost part costs only its record"
    assert entries(records[:2] + records[3:]) == [plan]
