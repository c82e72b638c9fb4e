"""One partition while it is held: what may start, what may be committed, when it is idle."""

import asyncio

import pytest
from consumer_fakes import Record, offsets, records
from hypothesis import given, settings
from hypothesis import strategies as st

from services.consumer.lane import Lane


def lane(*waiting: Record, offset: int | None = 0) -> Lane:
    one = Lane(offset, epoch=1)
    one.put(list(waiting), received_us=1)
    return one


def test_an_event_that_is_done_before_an_earlier_one_waits_for_it():
    one = lane(*records(4, 3), offset=4)
    first, second = one.start(1), one.start(1)
    for taken in (first, second):
        one.returned(taken)

    one.finished(second)
    assert (one.position, one.committable) == (4, None)

    one.finished(first)
    assert (one.position, one.committable) == (6, 6)


def test_what_is_committed_is_not_committed_again():
    one = lane(*records(0, 1))
    taken = one.start(1)
    one.returned(taken)
    one.finished(taken)
    one.committed(1)

    assert one.committable is None


def test_an_offset_handed_on_is_not_committed_before_something_is_done():
    assert lane(offset=17).committable is None
    assert lane(offset=17).position == 17


def test_nothing_is_known_of_a_partition_without_an_offset_until_something_is_done():
    one = lane(*records(30, 2), offset=None)
    assert (one.position, one.committable, one.expected) == (None, None, 32)

    taken = one.start(1)
    one.returned(taken)
    one.finished(taken)
    assert (one.position, one.committable) == (31, 31)


@pytest.mark.parametrize("offset", [30, None])
def test_what_was_begun_is_uncommitted_from_the_last_commit_on(offset):
    one = lane(*records(30, 4), offset=offset)
    assert not one.uncommitted

    first, _ = one.start(2), one.start(1)
    assert one.uncommitted == range(30, 33)

    one.returned(first)
    one.finished(first)
    assert one.uncommitted == range(30, 33), "done is not committed"
    one.committed(32)
    assert one.uncommitted == range(32, 33)


def test_nothing_is_uncommitted_once_all_that_was_begun_is_committed():
    one = lane(*records(0, 2))
    taken = one.start(1)
    one.returned(taken)
    one.finished(taken)
    one.committed(1)
    assert not one.uncommitted


def test_records_that_were_there_before_are_left_out():
    one = lane(*records(0, 3))
    one.put(records(1, 4), 2)

    assert offsets(one.queue) == [0, 1, 2, 3, 4]
    assert one.expected == 5


@pytest.mark.parametrize("reason", ["closed", "paused", "empty", "enough are running"])
def test_no_event_is_started(reason):
    one = lane(*records(0, 2))
    most = 1
    if reason == "closed":
        one.is_open = False
    elif reason == "paused":
        one.paused = True
    elif reason == "empty":
        one.start(2)
        most = 2
    else:
        one.start(1)

    assert not one.may_start(most)


def test_events_of_one_key_do_not_overlap_and_others_do():
    one = lane(Record(0, key=b"a"), Record(1, key=b"b"), Record(2, key=b"a"))
    first = one.start(1)
    assert one.may_start(3), "b may run beside a"
    one.start(1)
    assert not one.may_start(3), "the second a waits for the first"

    one.returned(first)
    assert one.may_start(3)


def test_events_without_a_key_belong_to_nobody():
    one = lane(Record(0), Record(1))
    one.start(1)

    assert one.may_start(2)


def test_a_batch_ends_before_a_key_that_another_batch_is_at_work_on():
    one = lane(Record(0, key=b"a"), Record(1, key=b"b"), Record(2, key=b"a"))
    first = one.start(1)

    assert offsets(one.start(5)) == [1]
    one.returned(first)
    assert offsets(one.start(5)) == [2]


def test_a_batch_may_hold_the_same_key_twice():
    assert offsets(lane(Record(0, key=b"a"), Record(1, key=b"a")).start(5)) == [0, 1]


def test_a_lane_is_idle_once_every_event_that_was_started_is_done_for_good():
    async def story() -> None:
        one = lane(*records(0, 2))
        taken = one.start(1)
        one.returned(taken)
        assert not one.is_idle, "its output is not acknowledged yet"
        one.finished(taken)
        assert one.is_idle, "what only waits does not count"
        await asyncio.wait_for(one.idle(), 1)

    asyncio.run(story())


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
    one = lane(*waiting)
    at_work: list[list[tuple[Record, int]]] = []
    done: set[int] = set()
    while one.queue or at_work:
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
