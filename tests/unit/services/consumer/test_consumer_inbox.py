"""Records between the fetch and the server, across rebalances."""

import asyncio
from dataclasses import dataclass

import pytest

from services.consumer.inbox import ENOUGH_RECORDS, Inbox


@dataclass(frozen=True)
class Record:
    offset: int
    timestamp: int = 0


def records(first: int, count: int, timestamp: int = 0) -> list[Record]:
    return [Record(offset, timestamp) for offset in range(first, first + count)]


def offsets(inbox: Inbox) -> list[int]:
    taken = []
    while entry := inbox.take():
        taken.append(entry[0].offset)
    return taken


def test_the_oldest_record_of_all_partitions_comes_first():
    inbox = Inbox()
    inbox.open([0, 1])
    inbox.put(0, [Record(10, timestamp=5), Record(11, timestamp=9)], 1)
    inbox.put(1, [Record(70, timestamp=7)], 1)

    assert offsets(inbox) == [10, 70, 11]


def test_a_closed_inbox_hands_out_nothing_and_what_is_lost_to_others_is_dropped():
    inbox = Inbox()
    inbox.open([0, 1])
    inbox.put(0, records(0, 2), 1)
    inbox.put(1, records(50, 2), 1)

    inbox.close()
    assert inbox.take() is None

    inbox.open([0], kept=[0])
    assert offsets(inbox) == [0, 1]


def test_a_partition_that_comes_back_without_being_kept_starts_empty():
    inbox = Inbox()
    inbox.open([0])
    inbox.put(0, records(0, 5), 1)
    inbox.close()
    inbox.open([0])

    assert inbox.take() is None
    assert inbox.fetched_to(0) is None


def test_records_of_the_coming_assignment_wait_for_it():
    inbox = Inbox()
    inbox.close()
    inbox.put(3, records(7, 1), 1)
    inbox.open([3])

    assert offsets(inbox) == [7]


def test_records_of_a_partition_that_was_not_assigned_are_refused():
    inbox = Inbox()
    inbox.open([0])
    inbox.put(1, records(0, 3), 1)

    assert inbox.take() is None


def test_what_a_kept_partition_held_already_is_not_taken_twice():
    inbox = Inbox()
    inbox.open([0])
    inbox.put(0, records(0, 3), 1)
    inbox.close()
    inbox.put(0, records(1, 4), 2)  # the new assignment fetched from the committed offset before it was sought
    inbox.open([0], kept=[0])

    assert offsets(inbox) == [0, 1, 2, 3, 4]


def test_positions_are_the_next_offsets_to_serve():
    inbox = Inbox()
    inbox.open([0, 1, 2])
    inbox.put(0, records(5, 2), 1)
    inbox.put(1, records(8, 1), 1)
    assert inbox.take() is not None

    assert inbox.positions == {0: 6, 1: 8}
    assert len(offsets(inbox)) == 2
    assert inbox.positions == {0: 7, 1: 9}, "of partition 2 nothing is known yet"


def test_polling_rests_while_enough_is_waiting_and_goes_on_when_there_is_room():
    async def story() -> None:
        inbox = Inbox()
        inbox.open([0])
        inbox.put(0, records(0, ENOUGH_RECORDS), 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(inbox.space(), 0.01)
        inbox.take()
        await asyncio.wait_for(inbox.space(), 1)
        await asyncio.wait_for(inbox.filled(), 1)
        inbox.close()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(inbox.filled(), 0.01)

    asyncio.run(story())
