"""Partition queues: the order of processing, commits, retries, and when fetching pauses."""

import asyncio
from functools import partial

import pytest
from consumer_fakes import Record, offsets, records
from hypothesis import given, settings
from hypothesis import strategies as st

from services.consumer import partition_queue
from services.consumer.interface import Event
from services.consumer.partition_queue import MAX_HEAD_START_US, Batch, PartitionQueue, PartitionQueues


def new_queue(*records: Event, offset: int | None = 0) -> PartitionQueue:
    queue = PartitionQueue(0, offset, epoch=1)
    queue.put(list(records), polled_us=1, now_s=1.0)
    return queue


def test_records_that_were_polled_before_are_left_out():
    queue = new_queue(*records(0, 3))
    queue.put(records(1, 4), 2, 2.0)
    assert offsets(queue.backlog) == [0, 1, 2, 3, 4]
    assert queue.next_fetch_offset == 5


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([None, b"a", b"b", b"c"])), min_size=1, max_size=25),
    st.integers(1, 4),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_only_offsets_below_which_all_events_are_done_are_committed_and_keys_never_overlap(
    steps, max_events, max_handlers, random
):
    polled_records = [Record(sum(step for step, _ in steps[: n + 1]), key=key) for n, (_, key) in enumerate(steps)]
    queue = new_queue(*polled_records)
    in_flight: list[Batch] = []
    done: set[int] = set()
    while queue.backlog or in_flight:
        while queue.may_start(max_handlers):
            in_flight.append(queue.start(max_events))
        keys = [{event.key for event in batch.events} - {None} for batch in in_flight]
        assert sum(map(len, keys)) == len(set().union(*keys)), "two handlers work on one key"
        batch = in_flight.pop(random.randrange(len(in_flight)))
        queue.handler_returned(batch)
        queue.finish(batch)
        done.update(offsets(batch.events))
        unfinished = [record.offset for record in polled_records if record.offset not in done]
        if queue.committable_offset is not None:
            assert queue.committable_offset <= min(unfinished, default=queue.committable_offset)
            assert queue.committable_offset - 1 in done
            queue.mark_committed(queue.committable_offset)

    assert queue.position == polled_records[-1].offset + 1
    assert queue.is_idle


def new_queues(*partitions: int, per_partition: int = 1, batch_size: int = 1, **more) -> PartitionQueues:
    queues = PartitionQueues(per_partition=per_partition, batch_size=batch_size, **more)
    queues.open(dict.fromkeys(partitions, 0), epoch=1)
    return queues


def serve_all(queues: PartitionQueues) -> list[int]:
    """Start and finish all events that may start, one after the other; return their offsets."""
    served = []
    while found := queues.take():
        queue, batch = found
        queues.handler_returned(queue, batch)
        queue.finish(batch)
        served += offsets(batch.events)
    return served


def test_events_are_served_by_arrival_over_all_partitions_and_in_order_within_one():
    """Events polled together are ordered by their timestamps."""
    queues = new_queues(0, 1, clock=lambda: 50.0)
    polled = partial(Record, received_us=20_000)
    queues.put(0, [polled(10, timestamp=5), polled(11, timestamp=9), polled(12, timestamp=1)], 20_000)
    queues.put(1, [polled(70, timestamp=7)], 20_000)
    assert serve_all(queues) == [10, 70, 11, 12]


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_producer_with_a_wrong_clock_starves_no_partition(hours):
    """Each partition gets an event every 10 ms, and one event is served every 10 ms: half of the load."""
    now_s, wrong_ms = 5000.0, hours * 3_600_000
    queues = new_queues(0, 1, clock=lambda: now_s)
    waited_s: dict[int, list[float]] = {0: [], 1: []}
    arrived_s: dict[int, list[float]] = {0: [], 1: []}
    for number in range(1000):
        now_s += 0.01
        for partition, stamp_ms in ((0, now_s * 1e3 + wrong_ms), (1, now_s * 1e3)):
            now_us = round(now_s * 1e6)
            queues.put(partition, [Record(number, timestamp=round(stamp_ms), received_us=now_us)], now_us)
            arrived_s[partition].append(now_s)
        queue, batch = queues.take()
        waited_s[queue.partition].append(now_s - arrived_s[queue.partition][batch.events[0].offset])
        queues.handler_returned(queue, batch)
        queue.finish(batch)
    assert abs(len(waited_s[0]) - len(waited_s[1])) <= MAX_HEAD_START_US / 1e4 + 2, "equal numbers of events"
    assert abs(waited_s[0][-1] - waited_s[1][-1]) <= MAX_HEAD_START_US / 1e6 + 0.03


def failed(queues: PartitionQueues, after_s: float = 60.0) -> tuple[PartitionQueue, Batch]:
    """Start the next event and let it fail."""
    queue, batch = queues.take()
    queues.handler_returned(queue, batch)
    queues.retry(queue, batch, after_s)
    return queue, batch


async def test_a_retry_delays_only_its_own_partition():
    queues = new_queues(0, 1)
    queues.put(0, records(0, 2), 1)
    queue, failing = failed(queues, 0.0)
    queues.put(1, records(10, 2), 1)
    assert serve_all(queues) == [10, 11]
    assert not queue.is_idle
    await asyncio.wait_for(queues.startable.wait(), 1)
    assert queues.take() == (queue, failing)
    queues.handler_returned(queue, failing)
    queue.finish(failing)
    assert serve_all(queues) == [1]
    assert (queue.position, queue.is_idle) == (2, True)


async def test_a_closed_partition_leaves_its_retries_to_the_next_owner():
    queues = new_queues(0)
    queues.put(0, records(0, 3), 1)
    queue, failing = failed(queues)
    queues.close([0])
    assert (queue.is_idle, queue.position, offsets(queue.backlog)) == (True, 0, [0, 1, 2])
    queue.make_due(failing)
    assert queues.take() is None
    queues.reopen([0], 2)
    assert serve_all(queues) == [0, 1, 2]


async def test_an_event_begun_after_a_failed_one_is_not_served_twice():
    queues = new_queues(0, per_partition=2)
    queues.put(0, records(0, 3), 1)
    queue, failing = failed(queues)
    queue, behind = queues.take()
    queues.handler_returned(queue, behind)
    queue.finish(behind)
    queues.close([0])
    assert not queue.is_idle, "the partition stays claimed until the failed event is done"
    queue.make_due(failing)
    queues._offer(queue)
    assert queues.take() == (queue, failing)
    queues.handler_returned(queue, failing)
    queue.finish(failing)
    assert (queue.is_idle, queue.position) == (True, 2)


def test_a_closed_partition_is_owned_but_not_served_until_it_is_reopened():
    queues = new_queues(0, 1)
    queues.put(0, records(0, 3), 1)
    queues.close([0])
    assert (queues.owned_partitions, queues.served_partitions, serve_all(queues)) == ({0, 1}, (1,), [])
    queues.pause(0)
    queues.reopen([0], epoch=4)
    assert (queues.served_partitions, queues[0].epoch, serve_all(queues)) == ((0, 1), 4, []), "paused"
    queues.resume(0)
    queue, batch = queues.take()
    assert [event.epoch for event in batch.events] == [4], "its token, although it was polled under another plan"
    queues.handler_returned(queue, batch)
    queue.finish(batch)
    assert serve_all(queues) == [1, 2]


def test_an_event_in_flight_of_a_dropped_partition_has_no_effect_on_its_new_queue():
    queues = new_queues(0)
    queues.put(0, records(0, 3), 1)
    old, batch = queues.take()
    queues.drop([0])
    queues.open({0: 1}, epoch=2)
    old.handler_returned(batch)
    old.finish(batch)
    assert queues[0] is not old
    assert (queues[0].position, queues[0].committable_offset) == (1, None)
    assert serve_all(queues) == [], "the backlog went with the old queue"


def test_fetching_pauses_at_a_long_backlog_and_resumes_at_a_short_one():
    queues = new_queues(0)
    calls: list[tuple[int, bool]] = []
    queues.on_full = lambda partition, full: calls.append((partition, full))

    queues.put(0, records(0, partition_queue.PAUSE_FETCH_RECORDS - 1), 1)
    assert calls == []
    queues.put(0, records(partition_queue.PAUSE_FETCH_RECORDS - 1, 5), 1)
    queues.put(0, records(partition_queue.PAUSE_FETCH_RECORDS + 4, 5), 1)
    assert calls == [(0, True)]

    remaining = partition_queue.PAUSE_FETCH_RECORDS + 9
    while remaining > partition_queue.RESUME_FETCH_RECORDS + 1:
        queues.handler_returned(*queues.take())
        remaining -= 1
    assert calls == [(0, True)]
    queues.take()
    assert calls == [(0, True), (0, False)]


def test_large_records_pause_their_partition_at_its_share_and_all_polls_until_some_are_served():
    large = partition_queue.MAX_WAITING_BYTES // 8
    queues = new_queues(0, 1)
    calls: list[tuple[int, bool]] = []
    queues.on_full = lambda partition, full: calls.append((partition, full))
    for partition in (0, 1):
        queues.put(partition, [Record(offset, key=None, value=bytes(large)) for offset in range(4)], 1)
    assert calls == [(0, True), (1, True)]
    assert queues.free_bytes == 0
    for _ in range(2):
        queue, batch = queues.take()
        queues.handler_returned(queue, batch)
    assert queues.free_bytes == 2 * large
    assert (queue.partition, calls[2:]) == (0, [(0, False)])


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
    queues = new_queues(0, 1, 2, per_partition=per_partition, batch_size=batch_size)
    written = {0: 0, 1: 0, 2: 0}
    started: dict[int, list[int]] = {0: [], 1: [], 2: []}
    in_flight = []

    def take() -> None:
        if found := queues.take():
            (partition,) = [p for p, queue in queues.items() if queue is found[0]]
            started[partition] += offsets(found[1].events)
            in_flight.append(found)

    def end(number: int) -> None:
        if in_flight:
            queue, batch = in_flight.pop(number % len(in_flight))
            queues.handler_returned(queue, batch)
            queue.finish(batch)

    for what, number, count in story:
        if what == "put":
            queues.put(number, records(written[number], count), 1)
            written[number] += count
        elif what == "take":
            take()
        elif what == "end":
            end(number)
        else:
            at = queues[number].position
            queues.drop([number])
            queues.open({number: at}, epoch=2)
            del started[number][started[number].index(at) if at in started[number] else len(started[number]) :]
            queues.put(number, records(at, written[number] - at), 1)
    for _ in range(200):
        take()
        end(0)

    assert started == {partition: list(range(count)) for partition, count in written.items()}
    assert {partition: queue.position for partition, queue in queues.items()} == written
