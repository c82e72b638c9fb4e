"""What a replica does in an incremental round: keep, take, release; what it hands on and reports."""

import asyncio

from aiokafka.errors import NotCoordinatorForGroupError
from consumer_fakes import eventually, offsets, records
from handover_story import Story, end

from contracts.clock import now_us
from contracts.plan import PlanRecord
from contracts.progress import RoundKind
from services.consumer.rounds import Given


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
    assert (queue.is_open, queue.epoch) == (True, 2)
    end(queue, taken)
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
    end(*at_work)
    await under_way

    assert s.group.since() == ["fetch [1] from {}", "commit {0: 4}", "released [0]"]
    assert s.queues.held == {1}
    given = s.assignor.given[0]
    assert given.offset == 4
    assert began_us <= given.at_us <= now_us()


async def test_what_waited_in_a_partition_that_goes_is_left_to_its_next_owner():
    s = Story()
    await s.round(1, 0)
    s.queues.put(0, records(0, 5), 1)
    await s.round(2)
    await s.round(3, 0, given={0: Given(0, 0)})
    assert s.queues.take() is None
    assert s.group.positions == {0: 0}


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

    end(*at_work)
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
    end(*at_work)
    for _ in range(5):
        await asyncio.sleep(0)
    assert s.group.since() == []
    queue, taken = s.queues.take()
    assert offsets(taken) == [1]
    assert queue.position == 1


async def test_a_commit_that_is_refused_before_a_release_still_hands_on_what_was_done(monkeypatch):
    s = Story()
    monkeypatch.setattr("services.consumer.output.LAST_COMMIT_S", 0.0)
    monkeypatch.setattr("services.consumer.output.RETRY_S", 0.001)
    await s.round(1, 0)
    s.serve(0, 2)
    s.group.answers = [NotCoordinatorForGroupError() for _ in range(9)]
    await s.round(2)
    assert s.assignor.given[0].offset == 2
    assert s.group.group == {}


# What is reported


async def test_a_round_is_noted_with_its_pause_and_how_long_the_plan_took():
    s = Story()
    at_us = now_us()
    s.plan = PlanRecord(epoch=4, at_us=at_us - 50_000, replicas=("me",), assignment={0: "me"}, reason="")
    await s.round(1, 0, 1, given={0: Given(3, at_us - 20_000), 1: Given(3, at_us - 30_000)}, epoch=4)
    (noted,) = s.handover.timings
    assert (noted.generation, noted.epoch, noted.kind, noted.members) == (1, 4, RoundKind.PLAN, 2)
    assert (noted.taken, noted.released) == (2, 0)
    assert 30_000 <= noted.pause_us < 1_000_000
    assert 50_000 <= noted.plan_us < 1_000_000
    assert noted.at_us >= at_us


async def test_a_round_that_changes_nothing_is_not_noted_and_one_without_a_plan_has_no_plan_time():
    s = Story()
    await s.round(1, 0)
    assert [each.plan_us for each in s.handover.timings] == [0]
    assert [each.pause_us for each in s.handover.timings] == [0], "nobody said when it was given up"
    await s.round(2, 0)
    assert len(s.handover.timings) == 1
    await s.round(3)
    assert [(each.taken, each.released) for each in s.handover.timings] == [(1, 0), (0, 1)]
