"""All partitions together: which event comes next, when fetching rests, what a handover leaves behind."""

import asyncio

import pytest
from consumer_fakes import Record, offsets, records
from hypothesis import given, settings
from hypothesis import strategies as st

from services.consumer.lanes import ENOUGH, WANTING, Lanes


def lanes(*partitions: int, per_partition: int = 1, batch_size: int = 1) -> Lanes:
    some = Lanes(per_partition=per_partition, batch_size=batch_size)
    some.open(dict.fromkeys(partitions, 0), epoch=1)
    return some


def started(some: Lanes) -> list[int]:
    """Start and finish what may be started, one after the other."""
    served = []
    while found := some.take():
        lane, taken = found
        lane.returned(taken)
        lane.finished(taken)
        served += offsets(taken)
    return served


def test_the_oldest_event_of_all_partitions_comes_first_and_each_partition_stays_in_order():
    some = lanes(0, 1)
    some.put(0, [Record(10, timestamp=5), Record(11, timestamp=9), Record(12, timestamp=1)], 1)
    some.put(1, [Record(70, timestamp=7)], 1)

    assert started(some) == [10, 70, 11, 12]


def test_a_batch_takes_what_is_there_and_no_more():
    some = lanes(0, batch_size=3)
    some.put(0, records(0, 4), 1)

    assert [offsets(some.take()[1]) for _ in range(1)] == [[0, 1, 2]]
    assert some.take() is None, "one batch of a partition at a time"


def test_two_events_of_a_partition_run_side_by_side_where_that_is_wanted():
    some = lanes(0, per_partition=2)
    some.put(0, records(0, 3), 1)

    assert [offsets(some.take()[1]) for _ in range(2)] == [[0], [1]]
    assert some.take() is None


def test_records_of_a_partition_that_is_not_held_are_left_to_its_owner():
    some = lanes(0)
    some.put(1, records(0, 3), 1)

    assert started(some) == []


def test_a_closed_partition_is_claimed_but_not_served_and_goes_on_where_it_was_when_it_stays():
    some = lanes(0, 1)
    some.put(0, records(0, 3), 1)
    some.close([0])
    assert (some.held, some.serving, started(some)) == ({0, 1}, (1,), [])

    some.reopen([0], epoch=4)
    assert (some.serving, some[0].epoch, started(some)) == ((0, 1), 4, [0, 1, 2])


def test_what_is_still_handled_of_a_dropped_partition_counts_for_nothing_when_it_comes_back():
    some = lanes(0)
    some.put(0, records(0, 3), 1)
    old, taken = some.take()
    some.drop([0])
    some.open({0: 1}, epoch=2)
    old.returned(taken)
    old.finished(taken)

    assert some[0] is not old
    assert (some[0].position, some[0].committable) == (1, None)
    assert started(some) == [], "what waited went with the old lane"


def test_fetching_rests_from_enough_until_there_is_room_for_more():
    some = lanes(0)
    said: list[tuple[int, bool]] = []
    some.on_full = lambda partition, full: said.append((partition, full))

    some.put(0, records(0, ENOUGH - 1), 1)
    assert said == []
    some.put(0, records(ENOUGH - 1, 5), 1)
    some.put(0, records(ENOUGH + 4, 5), 1)
    assert said == [(0, True)]

    left = ENOUGH + 9
    while left > WANTING + 1:
        lane, taken = some.take()
        lane.returned(taken)
        left -= 1
    assert said == [(0, True)]
    some.take()
    assert said == [(0, True), (0, False)]


def test_a_partition_that_was_full_and_comes_back_is_weighed_anew():
    some = lanes(0)
    said: list[tuple[int, bool]] = []
    some.on_full = lambda partition, full: said.append((partition, full))
    some.put(0, records(0, ENOUGH), 1)
    some.drop([0])
    some.open({0: 0}, epoch=2)
    some.put(0, records(0, ENOUGH), 1)

    assert said == [(0, True), (0, True)]


def test_settling_waits_for_what_is_handled_and_names_what_is_late():
    async def story() -> None:
        some = lanes(0, 1, 2)
        for partition in (0, 1, 2):
            some.put(partition, records(0, 2), 1)
        (quick, its), (slow, _) = some.take(), some.take()
        some.close([0, 1, 2])

        def quick_is_done() -> None:
            quick.returned(its)
            quick.finished(its)

        asyncio.get_running_loop().call_soon(quick_is_done)
        assert await some.settle([0, 1, 2], 0.02) == {0, 2}
        assert not slow.is_idle
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1, "nobody goes on waiting"

    asyncio.run(story())


def test_a_server_with_nothing_to_do_is_woken_by_a_record_a_reopening_and_a_return():
    async def story() -> None:
        some = lanes(0)

        async def wakes() -> bool:
            try:
                await asyncio.wait_for(some.startable(), 0.005)
            except TimeoutError:
                return False
            return True

        assert some.take() is None
        assert not await wakes()
        some.put(0, records(0, 1), 1)
        assert await wakes()
        some.close([0])
        assert some.take() is None
        assert not await wakes()
        some.reopen([0], 1)
        assert await wakes()

    asyncio.run(story())


moves = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 2), st.integers(1, 3)),
    st.tuples(st.just("take"), st.just(0), st.just(0)),
    st.tuples(st.just("end"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("move away and back"), st.integers(0, 2), st.just(0)),
)


@pytest.mark.parametrize(("per_partition", "batch_size"), [(1, 1), (3, 1), (2, 3)])
@settings(max_examples=40, deadline=None)
@given(st.lists(moves, max_size=60))
def test_whatever_happens_every_event_is_served_and_in_the_order_of_its_partition(per_partition, batch_size, story):
    """A partition that moves away and back begins where the group has it: nothing is left out, some may repeat."""
    some = lanes(0, 1, 2, per_partition=per_partition, batch_size=batch_size)
    written = {0: 0, 1: 0, 2: 0}
    begun: dict[int, list[int]] = {0: [], 1: [], 2: []}
    at_work = []

    def take() -> None:
        if found := some.take():
            (partition,) = [p for p, lane in some.items() if lane is found[0]]
            begun[partition] += offsets(found[1])
            at_work.append(found)

    def end(number: int) -> None:
        if at_work:
            lane, taken = at_work.pop(number % len(at_work))
            lane.returned(taken)
            lane.finished(taken)

    for what, number, count in story:
        if what == "put":
            some.put(number, records(written[number], count), 1)
            written[number] += count
        elif what == "take":
            take()
        elif what == "end":
            end(number)
        else:
            at = some[number].position
            some.drop([number])
            some.open({number: at}, epoch=2)
            del begun[number][begun[number].index(at) if at in begun[number] else len(begun[number]) :]
            some.put(number, records(at, written[number] - at), 1)
    for _ in range(200):
        take()
        end(0)

    assert begun == {partition: list(range(count)) for partition, count in written.items()}
    assert {partition: lane.position for partition, lane in some.items()} == written
