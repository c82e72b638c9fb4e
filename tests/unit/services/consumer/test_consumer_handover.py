"""What a replica keeps, takes, releases and hands on in a round, and when it is lost, leaves, or stops for all."""

import asyncio
from dataclasses import replace

import pytest
from aiokafka.errors import NotCoordinatorForGroupError
from consumer_fakes import HandoverStory as Story
from consumer_fakes import eventually, offsets, records

from contracts.clock import now_us
from contracts.plan import PlanRecord
from contracts.progress import RoundKind
from services.consumer import handover as handover_module
from services.consumer.rebalance import Given


async def test_what_is_taken_begins_where_the_last_owner_ended_and_the_rest_where_the_group_has_it():
    s = Story()
    s.group.group = {1: 40, 2: 50}
    await s.round(1, 0, 1, 2, given={0: Given(17, 0), 2: Given(55, 0)})
    assert s.group.since() == ["look up [1]", "taken [0, 1, 2]", "fetch [0, 1, 2] from {0: 17, 1: 40, 2: 55}"]
    assert {p: queue.position for p, queue in s.queues.items()} == {0: 17, 1: 40, 2: 55}


async def test_what_stays_is_neither_stopped_nor_sought_nor_announced():
    s = Story()
    await s.round(1, 0)
    queue, taken = s.start(0)
    s.group.since()
    await s.round(2, 0, 1, given={1: Given(3, 0)}, epoch=2)
    assert s.group.since() == ["taken [1]", "fetch [0, 1] from {1: 3}"]
    assert s.queues[0] is queue
    assert (queue.is_open, queue.epoch, queue.generation) == (True, 2, 1)
    s.end(queue, taken)
    assert queue.committable == 1


async def test_what_goes_is_finished_committed_and_released_in_this_order_and_handed_on_with_its_offset():
    s = Story()
    await s.round(1, 0, 1)
    s.serve(0, 3)
    at_work = s.start(0)
    s.group.since()
    began_us = now_us()

    under_way = asyncio.ensure_future(s.round(2, 1))
    await eventually(lambda: s.group.fetched == {1})
    assert s.queues.serving == (1,)
    assert s.queues.held == {0, 1}, "claimed until it is finished"
    s.end(*at_work)
    await under_way

    assert s.group.since() == ["fetch [1] from {}", "commit {0: 4}", "released [0]"]
    assert s.queues.held == {1}
    given = s.assignor.given[0]
    assert given.offset == 4
    assert began_us <= given.at_us <= now_us()


async def test_offsets_are_handed_on_once():
    s = Story()
    await s.round(1, 0)
    s.serve(0)
    await s.round(2)
    assert s.assignor.given.keys() == {0}
    await s.round(3)
    assert s.assignor.given == {}


async def test_a_slow_event_keeps_its_claim_while_the_round_goes_on_and_asks_for_another_once_it_is_done():
    s = Story()
    await s.round(1, 0, 1)
    at_work = s.start(0)
    s.serve(1)
    s.group.since()
    await s.round(2)
    assert s.queues.held == {0}, "still claimed"
    assert s.assignor.given.keys() == {1}
    assert s.group.since() == ["fetch [] from {}", "commit {1: 1}", "released [1]"]

    s.end(*at_work)
    await eventually(lambda: s.group.asked == ["rejoin"])
    s.group.since()
    await s.round(3)
    assert s.group.since() == ["fetch [] from {}", "commit {0: 1}", "released [0]"]
    assert s.assignor.given[0].offset == 1


async def test_a_slow_event_whose_partition_stays_after_all_asks_for_nothing_and_goes_on_from_where_it_was():
    s = Story()
    await s.round(1, 0)
    at_work = s.start(0)
    s.queues.put(0, records(1, 2), 1)
    await s.round(2)
    s.group.since()
    await s.round(3, 0)
    assert s.group.since() == ["fetch [0] from {0: 3}"]
    s.end(*at_work)
    for _ in range(5):
        await asyncio.sleep(0)
    assert s.group.since() == []
    queue, taken = s.queues.take()
    assert offsets(taken.records) == [1]
    assert queue.position == 1


async def test_what_the_group_has_not_confirmed_is_not_released_and_claimed_for_another_round(monkeypatch):
    s = Story()
    monkeypatch.setattr("services.consumer.output.LAST_COMMIT_S", 0.02)
    monkeypatch.setattr("services.consumer.output.RETRY_S", 0.001)
    s.group.group = {1: 7}
    await s.round(1, 0, 1)
    s.serve(0, 2)
    s.group.since()
    s.group.answers = [NotCoordinatorForGroupError() for _ in range(1000)]
    await s.round(2)
    assert s.queues.held == {0}, "of partition 1 nothing was to be committed"
    assert s.assignor.given.keys() == {1}
    await eventually(lambda: "rejoin" in s.group.asked)
    assert "released [1]" in s.group.asked
    assert "released [0]" not in s.group.asked

    s.group.answers.clear()
    s.group.since()
    await s.round(3)
    assert s.group.since() == ["fetch [] from {}", "commit {0: 2}", "released [0]"]
    assert s.assignor.given[0].offset == 2


async def test_who_leaves_without_having_committed_tells_that_it_lost_what_was_served(monkeypatch):
    s = Story()
    monkeypatch.setattr("services.consumer.output.LAST_COMMIT_S", 0.02)
    monkeypatch.setattr("services.consumer.output.RETRY_S", 0.001)
    await s.round(1, 0, 1)
    s.serve(0, 2)
    s.group.since()
    s.group.answers = [NotCoordinatorForGroupError() for _ in range(1000)]
    await s.handover.give_up_all(1.0)
    assert s.group.since() == ["released [1]", "lost [0]"]


async def test_a_loss_while_partitions_are_released_is_told_after_it_and_of_the_others_alone():
    s = Story()
    await s.round(1, 0, 1)
    gate = asyncio.Event()
    heard = s.hear("released")

    async def slow(partitions) -> None:
        await gate.wait()
        await heard(partitions)

    s.handover.calls.listeners = replace(s.handover.calls.listeners, on_partitions_released=slow)
    s.group.since()
    under_way = asyncio.ensure_future(s.round(2, 1))
    await eventually(lambda: s.queues.held == {1})
    lost = s.handover.lose()
    gate.set()
    await asyncio.gather(under_way, lost)
    assert s.group.since() == ["fetch [1] from {}", "released [0]", "lost [1]"]


# What is reported


async def test_a_round_is_noted_with_its_pause_and_how_long_the_plan_took():
    s = Story()
    at_us = now_us()
    s.plan_now = PlanRecord(epoch=4, at_us=at_us - 50_000, replicas=("me",), assignment={0: "me"}, reason="")
    await s.round(1, 0, 1, given={0: Given(3, at_us - 20_000), 1: Given(3, at_us - 30_000)}, epoch=4)
    (noted,) = s.handover.timings
    assert (noted.generation, noted.epoch, noted.kind, noted.members) == (1, 4, RoundKind.PLAN, 2)
    assert (noted.taken, noted.released) == (2, 0)
    assert 30_000 <= noted.pause_us < 1_000_000
    assert 50_000 <= noted.plan_us < 1_000_000
    assert noted.at_us >= at_us


# The group takes this replica for dead


async def test_what_is_lost_is_dropped_at_once_and_never_committed():
    s = Story()
    await s.round(1, 0, 1)
    s.serve(0)
    await s.handover.lose()
    assert s.group.asked[-1] == "lost [0, 1]"
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
    assert s.group.since() == ["look up [1]", "lost [0]"], "what was never told as taken is not told as lost"


async def test_losing_everything_while_a_listener_loads_what_was_taken_is_told_afterwards():
    s = Story()
    gate = asyncio.Event()
    heard = s.hear("taken")

    async def slow(partitions) -> None:
        await gate.wait()
        await heard(partitions)

    s.handover.calls.listeners = replace(s.handover.calls.listeners, on_partitions_taken=slow)
    under_way = asyncio.ensure_future(s.round(1, 0))
    for _ in range(5):
        await asyncio.sleep(0)
    lost = s.handover.lose()
    gate.set()
    assert not await under_way
    await lost
    assert s.group.since() == ["look up [0]", "taken [0]", "lost [0]"], "nothing is fetched"


# Another log


async def test_what_is_cut_off_serves_what_it_has_commits_nothing_and_is_lost_when_it_goes():
    s = Story()
    s.group.group = {0: 2}
    await s.round(1, 0)
    s.queues.put(0, records(2, 2), 1)
    s.queues.cut_off(0, "created anew")
    s.queues.put(0, records(4, 3), 1)
    while found := s.queues.take():
        s.end(*found)
    assert (s.queues[0].position, s.queues[0].committable) == (4, None)
    s.group.since()
    await s.round(2)
    assert s.group.since() == ["lost [0]", "fetch [] from {}"]
    assert s.assignor.given == {}, "its offset means nothing to the next owner"


async def test_an_offset_of_another_log_is_not_begun_at():
    s = Story()
    s.group.group, s.group.foreign = {0: 7, 1: 7}, {0}
    await s.round(1, 0, 1)
    for partition in (0, 1):
        s.queues.put(partition, records(7, 1), 1)
    assert s.queues.take()[0] is s.queues[1]
    assert s.queues.take() is None
    assert s.queues[0].cut_off


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
    s.end(*at_work)
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
    s.end(queue, taken)
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
    assert offsets(s.queues.take()[1].records) == [0]


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
    s.end(*at_work)
    await s.handover.committer.commit()
    assert s.group.group == {}
