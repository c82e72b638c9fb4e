"""Handing over when the group lets go of the replica, when it leaves, and when everybody stops (eager)."""

import asyncio

import pytest
from consumer_fakes import eventually, offsets, records
from handover_story import Story, end

from services.consumer import handover as handover_module
from services.consumer.rounds import Given

# The group takes this replica for dead


async def test_what_is_lost_is_dropped_at_once_and_never_committed():
    s = Story()
    await s.round(1, 0, 1)
    s.serve(0)
    assert s.handover.lose() == {0, 1}
    assert s.queues.held == frozenset()
    assert s.assignor.generation == -1
    s.group.since()
    assert not await s.handover.committer.commit() or s.group.since() == []


async def test_losing_everything_while_offsets_are_looked_up_takes_nothing():
    s = Story()
    await s.round(1, 0)
    s.group.since()
    s.group.lookup = asyncio.Event()
    under_way = asyncio.ensure_future(s.round(2, 0, 1))
    await eventually(lambda: s.group.asked == ["look up [1]"])
    s.handover.lose()
    s.group.lookup.set()
    assert not await under_way
    assert s.queues.held == frozenset()
    assert s.group.since() == ["look up [1]", "taken [1]", "lost [1]"], "nothing is fetched"


async def test_losing_everything_while_a_slow_event_is_waited_for_ends_the_round_quietly():
    s = Story()
    await s.round(1, 0, 1)
    at_work = s.start(0)
    under_way = asyncio.ensure_future(s.round(2))
    await eventually(lambda: s.group.fetched == frozenset())
    s.handover.lose()
    await under_way
    s.group.since()
    end(*at_work)
    for _ in range(5):
        await asyncio.sleep(0)
    assert s.group.since() == [], "nothing to commit, to release or to ask for"
    assert s.assignor.given == {}


# Leaving


async def test_before_leaving_everything_is_finished_committed_and_released():
    s = Story()
    await s.round(1, 0, 1)
    s.serve(0, 2)
    at_work = s.start(1)
    s.group.since()
    leaving = asyncio.ensure_future(s.handover.give_up_all(1.0))
    await asyncio.sleep(0)
    assert s.queues.serving == ()
    end(*at_work)
    await leaving
    assert s.group.since() == ["commit {0: 2, 1: 1}", "released [0, 1]"]
    assert s.queues.held == frozenset()


async def test_an_event_that_is_not_done_in_time_is_left_uncommitted():
    s = Story()
    await s.round(1, 0)
    s.serve(0)
    queue, taken = s.start(0)
    await s.handover.give_up_all(0.01)
    assert s.group.group == {0: 1}
    end(queue, taken)
    await s.handover.committer.commit()
    assert s.group.group == {0: 1}


# Leaving while nobody answers


async def test_what_is_left_when_nobody_answers_is_named_and_counts_as_lost():
    s = Story()
    await s.round(1, 0, 1, 2)
    s.serve(0, 2)
    await s.handover.committer.commit()
    s.serve(0)
    s.start(1)
    s.group.since()
    assert await s.handover.abandon() == {0: range(2, 3), 1: range(0, 1)}
    assert s.group.since() == ["lost [0, 1, 2]"], "no commit is tried, and nothing is released"
    assert s.queues.held == frozenset()


# Eager


async def test_eager_everything_stops_before_the_join_and_what_stays_goes_on_from_its_queue():
    s = Story(eager=True)
    await s.round(1, 0, 1)
    s.serve(0)
    s.queues.put(1, records(0, 2), 1)
    s.group.since()
    await s.handover.stop()
    assert s.queues.serving == ()
    assert s.group.since() == ["commit {0: 1}", "released [0, 1]"]
    assert not await s.handover.committer.commit() or s.group.since() == []
    assert s.queues.held == {0, 1}, "claimed, so that a sticky leader leaves it here"

    await s.round(2, 1, 2, given={2: Given(9, 0)})
    assert s.group.since()[-2:] == ["taken [1, 2]", "fetch [1, 2] from {2: 9}"]
    assert s.queues.held == {1, 2}
    assert offsets(s.queues.take()[1]) == [0]


@pytest.mark.parametrize(("generation", "member_id"), [(3, "me-1"), (2, "me-2")])
async def test_eager_nothing_is_kept_when_another_may_have_owned_it_in_a_round_that_was_missed(generation, member_id):
    s = Story(eager=True)
    await s.round(1, 0)
    s.queues.put(0, records(0, 4), 1)
    s.group.since()
    s.group.group, s.group.member_id = {0: 2}, member_id
    await s.round(generation, 0)
    assert s.group.since() == [
        "released [0]",
        "fetch [] from {}",
        "look up [0]",
        "taken [0]",
        "fetch [0] from {0: 2}",
    ]
    assert s.queues.take() is None


async def test_eager_an_event_that_does_not_end_in_time_is_not_waited_for_any_longer(monkeypatch):
    s = Story(eager=True)
    monkeypatch.setattr(handover_module, "STOP_S", 0.01)
    await s.round(1, 0)
    at_work = s.start(0)
    await s.round(2)
    assert s.queues.held == frozenset(), "it belongs to somebody else now"
    end(*at_work)
    await s.handover.committer.commit()
    assert s.group.group == {}
