"""Partition queues: the order of processing, commits, retries, and when fetching pauses."""

import asyncio

import pytest
from consumer_fakes import Record, offsets, records
from hypothesis import given, settings
from hypothesis import strategies as st

from services.consumer.partition_queue import (
    MAX_HEAD_START_S,
    PAUSE_FETCH_RECORDS,
    RESUME_FETCH_RECORDS,
    Batch,
    PartitionQueue,
    PartitionQueues,
)


def queue(*records: Record, offset: int | None = 0) -> PartitionQueue:
    one = PartitionQueue(0, offset, epoch=1)
    one.put(list(records), received_us=1, now_s=1.0)
    return one


def test_records_that_were_polled_before_are_left_out():
    one = queue(*records(0, 3))
    one.put(records(1, 4), 2, 2.0)
    assert offsets(one.backlog) == [0, 1, 2, 3, 4]
    assert one.next_fetch_offset == 5


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([None, b"a", b"b", b"c"])), min_size=1, max_size=25),
    st.integers(1, 4),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_only_offsets_below_which_all_events_are_done_are_committed_and_keys_never_overlap(steps, batch, most, random):
    waiting = [Record(sum(step for step, _ in steps[: n + 1]), key=key) for n, (_, key) in enumerate(steps)]
    one = queue(*waiting)
    at_work: list[Batch] = []
    done: set[int] = set()
    while one.backlog or at_work:
        while one.may_start(most):
            at_work.append(one.start(batch))
        keys = [{polled.record.key for polled in taken.records} - {None} for taken in at_work]
        assert sum(map(len, keys)) == len(set().union(*keys)), "two handlers work on one key"
        taken = at_work.pop(random.randrange(len(at_work)))
        one.handler_returned(taken)
        one.finish(taken)
        done.update(offsets(taken.records))
        unfinished = [record.offset for record in waiting if record.offset not in done]
        if one.committable_offset is not None:
            assert one.committable_offset <= min(unfinished, default=one.committable_offset)
            assert one.committable_offset - 1 in done
            one.mark_committed(one.committable_offset)

    assert one.position == waiting[-1].offset + 1
    assert one.is_idle


def queues(*partitions: int, per_partition: int = 1, batch_size: int = 1, **more) -> PartitionQueues:
    some = PartitionQueues(per_partition=per_partition, batch_size=batch_size, **more)
    some.open(dict.fromkeys(partitions, 0), epoch=1)
    return some


def started(some: PartitionQueues) -> list[int]:
    """Start and finish all events that may start, one after the other; return their offsets."""
    served = []
    while found := some.take():
        queue, taken = found
        some.handler_returned(queue, taken)
        queue.finish(taken)
        served += offsets(taken.records)
    return served


def test_events_are_served_by_arrival_over_all_partitions_and_in_order_within_one():
    """Events polled together are ordered by their timestamps."""
    some = queues(0, 1, clock=lambda: 50.0)
    some.put(0, [Record(10, timestamp=5), Record(11, timestamp=9), Record(12, timestamp=1)], 20_000)
    some.put(1, [Record(70, timestamp=7)], 20_000)
    assert started(some) == [10, 70, 11, 12]


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_producer_with_a_wrong_clock_starves_no_partition(hours):
    """Each partition gets an event every 10 ms, and one event is served every 10 ms: half of the load."""
    now_s, wrong_ms = 5000.0, hours * 3_600_000
    some = queues(0, 1, clock=lambda: now_s)
    waited_s: dict[int, list[float]] = {0: [], 1: []}
    came_s: dict[int, list[float]] = {0: [], 1: []}
    for number in range(1000):
        now_s += 0.01
        for partition, stamp_ms in ((0, now_s * 1e3 + wrong_ms), (1, now_s * 1e3)):
            some.put(partition, [Record(number, timestamp=round(stamp_ms))], round(now_s * 1e6))
            came_s[partition].append(now_s)
        queue, taken = some.take()
        waited_s[queue.partition].append(now_s - came_s[queue.partition][taken.records[0].record.offset])
        some.handler_returned(queue, taken)
        queue.finish(taken)
    assert abs(len(waited_s[0]) - len(waited_s[1])) <= 100 * MAX_HEAD_START_S + 2, (
        "half of the work is each partition's"
    )
    assert abs(waited_s[0][-1] - waited_s[1][-1]) <= MAX_HEAD_START_S + 0.03


def failed(some: PartitionQueues, after_s: float = 60.0) -> tuple[PartitionQueue, Batch]:
    """Start the next event and let it fail."""
    queue, taken = some.take()
    some.handler_returned(queue, taken)
    some.retry(queue, taken, after_s)
    return queue, taken


async def test_a_retry_delays_only_its_own_partition():
    some = queues(0, 1)
    some.put(0, records(0, 2), 1)
    queue, failing = failed(some, 0.0)
    some.put(1, records(10, 2), 1)
    assert started(some) == [10, 11]
    assert not queue.is_idle
    await asyncio.wait_for(some.wait_until_startable(), 1)
    assert some.take() == (queue, failing)
    some.handler_returned(queue, failing)
    queue.finish(failing)
    assert started(some) == [1]
    assert (queue.position, queue.is_idle) == (2, True)


async def test_a_closed_partition_leaves_its_retries_to_the_next_owner():
    some = queues(0)
    some.put(0, records(0, 3), 1)
    queue, failing = failed(some)
    some.close([0])
    assert (queue.is_idle, queue.position, offsets(queue.backlog)) == (True, 0, [0, 1, 2])
    queue.make_due(failing)
    assert some.take() is None
    some.reopen([0], 2)
    assert started(some) == [0, 1, 2]


async def test_an_event_begun_after_a_failed_one_is_not_served_twice():
    some = queues(0, per_partition=2)
    some.put(0, records(0, 3), 1)
    queue, failing = failed(some)
    queue, behind = some.take()
    some.handler_returned(queue, behind)
    queue.finish(behind)
    some.close([0])
    assert not queue.is_idle, "the partition stays claimed until the failed event is done"
    queue.make_due(failing)
    some._offer(queue)
    assert some.take() == (queue, failing)
    some.handler_returned(queue, failing)
    queue.finish(failing)
    assert (queue.is_idle, queue.position) == (True, 2)


def test_a_closed_partition_is_owned_but_not_served_until_it_is_reopened():
    some = queues(0, 1)
    some.put(0, records(0, 3), 1)
    some.close([0])
    assert (some.owned_partitions, some.served_partitions, started(some)) == ({0, 1}, (1,), [])
    some.pause(0)
    some.reopen([0], epoch=4)
    assert (some.served_partitions, some[0].epoch, started(some)) == ((0, 1), 4, []), "paused"
    some.resume(0)
    assert started(some) == [0, 1, 2]


def test_an_event_in_flight_of_a_dropped_partition_has_no_effect_on_its_new_queue():
    some = queues(0)
    some.put(0, records(0, 3), 1)
    old, taken = some.take()
    some.drop([0])
    some.open({0: 1}, epoch=2)
    old.handler_returned(taken)
    old.finish(taken)
    assert some[0] is not old
    assert (some[0].position, some[0].committable_offset) == (1, None)
    assert started(some) == [], "the backlog went with the old queue"


def test_fetching_pauses_at_a_long_backlog_and_resumes_at_a_short_one():
    some = queues(0)
    said: list[tuple[int, bool]] = []
    some.on_full = lambda partition, full: said.append((partition, full))

    some.put(0, records(0, PAUSE_FETCH_RECORDS - 1), 1)
    assert said == []
    some.put(0, records(PAUSE_FETCH_RECORDS - 1, 5), 1)
    some.put(0, records(PAUSE_FETCH_RECORDS + 4, 5), 1)
    assert said == [(0, True)]

    left = PAUSE_FETCH_RECORDS + 9
    while left > RESUME_FETCH_RECORDS + 1:
        some.handler_returned(*some.take())
        left -= 1
    assert said == [(0, True)]
    some.take()
    assert said == [(0, True), (0, False)]


moves = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 2), st.integers(1, 3)),
    st.tuples(st.just("take"), st.just(0), st.just(0)),
    st.tuples(st.just("end"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("move away and back"), st.integers(0, 2), st.just(0)),
)


@pytest.mark.parametrize(("per_partition", "batch_size"), [(1, 1), (3, 1), (2, 3)])
@settings(max_examples=40, deadline=None)
@given(st.lists(moves, max_size=60))
def test_every_event_is_served_in_the_order_of_its_partition(per_partition, batch_size, story):
    """A partition that moves away and back starts at the committed offset: no event is left out, some repeat."""
    some = queues(0, 1, 2, per_partition=per_partition, batch_size=batch_size)
    written = {0: 0, 1: 0, 2: 0}
    begun: dict[int, list[int]] = {0: [], 1: [], 2: []}
    at_work = []

    def take() -> None:
        if found := some.take():
            (partition,) = [p for p, queue in some.items() if queue is found[0]]
            begun[partition] += offsets(found[1].records)
            at_work.append(found)

    def end(number: int) -> None:
        if at_work:
            queue, taken = at_work.pop(number % len(at_work))
            some.handler_returned(queue, taken)
            queue.finish(taken)

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
