"""The queues of held partitions: what may start and be committed, which event comes next, when fetching rests."""

import asyncio

import pytest
from consumer_fakes import Record, offsets, records
from hypothesis import given, settings
from hypothesis import strategies as st

from services.consumer.partition_queue import ENOUGH, WANTING, PartitionQueue, PartitionQueues


def queue(*waiting: Record, offset: int | None = 0) -> PartitionQueue:
    one = PartitionQueue(offset, epoch=1)
    one.put(list(waiting), received_us=1)
    return one


@pytest.mark.parametrize("offset", [30, None])
def test_what_was_begun_is_uncommitted_from_the_last_commit_on(offset):
    one = queue(*records(30, 4), offset=offset)
    assert not one.uncommitted
    first, _ = one.start(2), one.start(1)
    assert one.uncommitted == range(30, 33)
    one.returned(first)
    one.finished(first)
    assert one.uncommitted == range(30, 33), "done is not committed"
    one.committed(32)
    assert one.uncommitted == range(32, 33)


def test_records_that_were_there_before_are_left_out():
    one = queue(*records(0, 3))
    one.put(records(1, 4), 2)
    assert offsets(one.waiting) == [0, 1, 2, 3, 4]
    assert one.expected == 5


def test_events_of_one_key_do_not_overlap_and_others_do():
    one = queue(Record(0, key=b"a"), Record(1, key=b"b"), Record(2, key=b"a"))
    first = one.start(1)
    assert one.may_start(3), "b may run beside a"
    one.start(1)
    assert not one.may_start(3), "the second a waits for the first"
    one.returned(first)
    assert one.may_start(3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([None, b"a", b"b", b"c"])), min_size=1, max_size=25),
    st.integers(1, 4),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_whatever_ends_first_only_what_is_done_without_a_gap_is_committed_and_keys_never_overlap(
    steps, batch, most, random
):
    waiting = [Record(sum(step for step, _ in steps[: n + 1]), key=key) for n, (_, key) in enumerate(steps)]
    one = queue(*waiting)
    at_work: list[list[tuple[Record, int]]] = []
    done: set[int] = set()
    while one.waiting or at_work:
        while one.may_start(most):
            at_work.append(list(one.start(batch)))
        keys = [{record.key for record, _ in taken} - {None} for taken in at_work]
        assert sum(map(len, keys)) == len(set().union(*keys)), "two handlers are at work on one key"
        taken = at_work.pop(random.randrange(len(at_work)))
        one.returned(taken)
        one.finished(taken)
        done.update(offsets(taken))
        unfinished = [record.offset for record in waiting if record.offset not in done]
        if one.committable is not None:
            assert one.committable <= min(unfinished, default=one.committable)
            assert one.committable - 1 in done
            one.committed(one.committable)

    assert one.position == waiting[-1].offset + 1
    assert one.is_idle


def queues(*partitions: int, per_partition: int = 1, batch_size: int = 1) -> PartitionQueues:
    some = PartitionQueues(per_partition=per_partition, batch_size=batch_size)
    some.open(dict.fromkeys(partitions, 0), epoch=1)
    return some


def started(some: PartitionQueues) -> list[int]:
    """Start and finish what may be started, one after the other."""
    served = []
    while found := some.take():
        queue, taken = found
        queue.returned(taken)
        queue.finished(taken)
        served += offsets(taken)
    return served


def test_the_oldest_event_of_all_partitions_comes_first_and_each_partition_stays_in_order():
    some = queues(0, 1)
    some.put(0, [Record(10, timestamp=5), Record(11, timestamp=9), Record(12, timestamp=1)], 1)
    some.put(1, [Record(70, timestamp=7)], 1)
    assert started(some) == [10, 70, 11, 12]


def test_a_closed_partition_is_claimed_but_not_served_and_goes_on_where_it_was_when_it_stays():
    some = queues(0, 1)
    some.put(0, records(0, 3), 1)
    some.close([0])
    assert (some.held, some.serving, started(some)) == ({0, 1}, (1,), [])
    some[0].paused = True
    some.reopen([0], epoch=4)
    assert (some.serving, some[0].epoch, started(some)) == ((0, 1), 4, []), "paused"
    some[0].paused = False
    assert started(some) == [0, 1, 2]


def test_what_is_still_handled_of_a_dropped_partition_counts_for_nothing_when_it_comes_back():
    some = queues(0)
    some.put(0, records(0, 3), 1)
    old, taken = some.take()
    some.drop([0])
    some.open({0: 1}, epoch=2)
    old.returned(taken)
    old.finished(taken)
    assert some[0] is not old
    assert (some[0].position, some[0].committable) == (1, None)
    assert started(some) == [], "what waited went with the old queue"


def test_fetching_rests_from_enough_until_there_is_room_for_more():
    some = queues(0)
    said: list[tuple[int, bool]] = []
    some.on_full = lambda partition, full: said.append((partition, full))

    some.put(0, records(0, ENOUGH - 1), 1)
    assert said == []
    some.put(0, records(ENOUGH - 1, 5), 1)
    some.put(0, records(ENOUGH + 4, 5), 1)
    assert said == [(0, True)]

    left = ENOUGH + 9
    while left > WANTING + 1:
        queue, taken = some.take()
        queue.returned(taken)
        left -= 1
    assert said == [(0, True)]
    some.take()
    assert said == [(0, True), (0, False)]


async def test_a_server_with_nothing_to_do_is_woken_by_a_record_and_by_a_reopening():
    some = queues(0)
    for news in (lambda: some.put(0, records(0, 1), 1), lambda: some.reopen([0], 1)):
        assert some.take() is None
        waiting = asyncio.ensure_future(some.startable())
        await asyncio.sleep(0)
        assert not waiting.done()
        news()
        await asyncio.wait_for(waiting, 1)
        some.close([0])


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
    some = queues(0, 1, 2, per_partition=per_partition, batch_size=batch_size)
    written = {0: 0, 1: 0, 2: 0}
    begun: dict[int, list[int]] = {0: [], 1: [], 2: []}
    at_work = []

    def take() -> None:
        if found := some.take():
            (partition,) = [p for p, queue in some.items() if queue is found[0]]
            begun[partition] += offsets(found[1])
            at_work.append(found)

    def end(number: int) -> None:
        if at_work:
            queue, taken = at_work.pop(number % len(at_work))
            queue.returned(taken)
            queue.finished(taken)

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
    assert {partition: queue.position for partition, queue in some.items()} == written
