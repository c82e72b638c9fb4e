"""The handover: how a replica takes, keeps, releases and loses partitions in a rebalance and when it leaves."""

import asyncio
from dataclasses import replace

import msgspec
import pytest
from aiokafka.errors import NotCoordinatorForGroupError
from consumer_fakes import HandoverHarness as Harness
from consumer_fakes import eventually, offsets, records

from contracts.clock import now_us
from contracts.progress import RebalanceKind
from services.consumer import handover as handover_module
from services.consumer.rebalance import HandedOverOffset


async def test_a_taken_partition_starts_at_the_handed_over_offset_or_else_the_committed_one():
    s = Harness()
    s.group.group = {1: 40, 2: 50}
    await s.rebalance(1, 0, 1, 2, handed_over={0: HandedOverOffset(17, 0), 2: HandedOverOffset(55, 0)})
    assert s.group.take_log() == ["query [1]", "taken [0, 1, 2]", "fetch [0, 1, 2] from {0: 17, 1: 40, 2: 55}"]
    assert {p: queue.position for p, queue in s.queues.items()} == {0: 17, 1: 40, 2: 55}


async def test_a_partition_that_stays_is_not_interrupted():
    s = Harness()
    await s.rebalance(1, 0)
    queue, batch = s.start(0)
    s.group.take_log()
    await s.rebalance(2, 0, 1, handed_over={1: HandedOverOffset(3, 0)}, epoch=2)
    assert s.group.take_log() == ["taken [1]", "fetch [0, 1] from {1: 3}"]
    assert s.queues[0] is queue
    assert (queue.is_open, queue.epoch, queue.generation) == (True, 2, 1)
    s.end(queue, batch)
    assert queue.committable_offset == 1


async def test_a_removed_partition_is_finished_committed_released_and_handed_over():
    s = Harness()
    await s.rebalance(1, 0, 1)
    s.serve(0, 3)
    in_flight = s.start(0)
    s.group.take_log()
    began_us = now_us()

    pending = asyncio.ensure_future(s.rebalance(2, 1))
    await eventually(lambda: s.group.fetched_partitions == {1})
    assert s.queues.served_partitions == (1,)
    assert s.queues.owned_partitions == {0, 1}, "claimed until its event is done"
    s.end(*in_flight)
    await pending

    assert s.group.take_log() == ["fetch [1] from {}", "commit {0: 4}", "released [0]"]
    assert s.queues.owned_partitions == {1}
    handed_over = s.assignor.handed_over[0]
    assert handed_over.offset == 4
    assert began_us <= handed_over.at_us <= now_us()


async def test_offsets_are_handed_over_once():
    s = Harness()
    await s.rebalance(1, 0)
    s.serve(0)
    await s.rebalance(2)
    assert s.assignor.handed_over.keys() == {0}
    await s.rebalance(3)
    assert s.assignor.handed_over == {}


async def test_a_partition_with_a_slow_event_stays_claimed_until_the_event_is_done():
    s = Harness()
    await s.rebalance(1, 0, 1)
    in_flight = s.start(0)
    s.serve(1)
    s.group.take_log()
    await s.rebalance(2)
    assert s.queues.owned_partitions == {0}, "the slow event is not done"
    assert s.assignor.handed_over.keys() == {1}
    assert s.group.take_log() == ["fetch [] from {}", "commit {1: 1}", "released [1]"]

    s.end(*in_flight)
    await eventually(lambda: s.group.log == ["rejoin"])
    s.group.take_log()
    await s.rebalance(3)
    assert s.group.take_log() == ["fetch [] from {}", "commit {0: 1}", "released [0]"]
    assert s.assignor.handed_over[0].offset == 1


async def test_a_partition_with_a_slow_event_continues_if_it_stays_after_all():
    s = Harness()
    await s.rebalance(1, 0)
    in_flight = s.start(0)
    s.queues.put(0, records(1, 2), 1)
    await s.rebalance(2)
    s.group.take_log()
    await s.rebalance(3, 0)
    assert s.group.take_log() == ["fetch [0] from {0: 3}"]
    s.end(*in_flight)
    for _ in range(5):
        await asyncio.sleep(0)
    assert s.group.take_log() == []
    queue, batch = s.queues.take()
    assert offsets(batch.events) == [1]
    assert queue.position == 1


async def test_a_partition_without_a_confirmed_commit_stays_claimed(monkeypatch):
    s = Harness()
    monkeypatch.setattr("services.consumer.output.LAST_COMMIT_TIMEOUT_S", 0.02)
    monkeypatch.setattr("services.consumer.output.RETRY_INTERVAL_S", 0.001)
    s.group.group = {1: 7}
    await s.rebalance(1, 0, 1)
    s.serve(0, 2)
    s.group.take_log()
    s.group.answers = [NotCoordinatorForGroupError() for _ in range(1000)]
    await s.rebalance(2)
    assert s.queues.owned_partitions == {0}, "partition 1 had nothing to commit"
    assert s.assignor.handed_over.keys() == {1}
    await eventually(lambda: "rejoin" in s.group.log)
    assert "released [1]" in s.group.log
    assert "released [0]" not in s.group.log

    s.group.answers.clear()
    s.group.take_log()
    await s.rebalance(3)
    assert s.group.take_log() == ["fetch [] from {}", "commit {0: 2}", "released [0]"]
    assert s.assignor.handed_over[0].offset == 2


async def test_leaving_without_a_commit_reports_the_partition_as_lost(monkeypatch):
    s = Harness()
    monkeypatch.setattr("services.consumer.output.LAST_COMMIT_TIMEOUT_S", 0.02)
    monkeypatch.setattr("services.consumer.output.RETRY_INTERVAL_S", 0.001)
    await s.rebalance(1, 0, 1)
    s.serve(0, 2)
    s.group.take_log()
    s.group.answers = [NotCoordinatorForGroupError() for _ in range(1000)]
    await s.handover.give_up_all(1.0)
    assert s.group.take_log() == ["released [1]", "lost [0]"]


def gated(s: Harness, call: str) -> asyncio.Event:
    """Let the listener of `call` wait for the returned event."""
    gate, record = asyncio.Event(), s.record(call)

    async def slow(partitions) -> None:
        await gate.wait()
        await record(partitions)

    s.handover.calls.listeners = replace(s.handover.calls.listeners, **{f"on_partitions_{call}": slow})
    return gate


async def test_a_loss_during_a_release_is_announced_afterwards_for_the_other_partitions():
    s = Harness()
    await s.rebalance(1, 0, 1)
    gate = gated(s, "released")
    s.group.take_log()
    pending = asyncio.ensure_future(s.rebalance(2, 1))
    await eventually(lambda: s.queues.owned_partitions == {1})
    lost = s.handover.lose_all()
    gate.set()
    await asyncio.gather(pending, lost)
    assert s.group.take_log() == ["fetch [1] from {}", "released [0]", "lost [1]"]


async def test_a_partition_is_handed_over_behind_what_holds_no_event():
    """Offsets 2 to 4 are a transaction's end; the new position is not known any more once it is not fetched."""
    s = Harness()
    await s.rebalance(1, 0, 1, handed_over={0: HandedOverOffset(0, 0), 1: HandedOverOffset(0, 0)})
    s.queues.put(0, records(0, 2), 1)
    s.group.next_fetch_offsets = {0: 5, 1: 3}
    batches = [s.queues.take(), s.queues.take()]
    assert batches[1] is None
    queue, batch = batches[0]
    s.queues.handler_returned(queue, batch)
    queue.finish(batch)
    queue, batch = s.queues.take()
    release = asyncio.ensure_future(s.rebalance(2, 1))
    await eventually(lambda: s.group.fetched_partitions == {1})
    s.group.next_fetch_offsets = {1: 3}
    s.queues.handler_returned(queue, batch)
    queue.finish(batch)
    await release
    assert s.handover.assignor.handed_over[0].offset == 5
    assert (queue.skipped, s.group.group) == (3, {0: 5, 1: 3})


# Reports


async def test_a_rebalance_is_reported_with_its_pause():
    """The clock of the last owner is 3 s ahead. Each replica measures a duration since the assignment before."""
    s = Harness()
    await s.rebalance(1)
    s.handover._assigned_s -= 1.0
    at_us, ahead_us, served = now_us(), 3_000_000, ((0, 980_000), (1, 970_000))
    stops = {p: HandedOverOffset(3, at_us - 1_000_000 + served_us + ahead_us, served_us) for p, served_us in served}
    await s.rebalance(2, 0, 1, handed_over=stops, epoch=4)
    (report,) = s.handover.rebalance_reports
    assert (report.generation, report.epoch, report.kind, report.members) == (2, 4, RebalanceKind.PLAN, 2)
    assert (report.taken, report.released) == (2, 0)
    assert 30_000 <= report.pause_us < 1_000_000
    assert report.at_us >= at_us


@pytest.mark.parametrize("generation", [2, 3])
async def test_no_pause_is_reported_without_durations_from_the_same_assignment(generation):
    s = Harness()
    await s.rebalance(1)
    from_older_replica = msgspec.json.decode(b"[3,7]", type=HandedOverOffset)
    stop = from_older_replica if generation == 2 else HandedOverOffset(3, 7, 0)
    await s.rebalance(generation, 0, handed_over={0: stop})
    assert s.handover.rebalance_reports[0].pause_us == 0


# A removed member


async def test_lost_partitions_are_dropped_at_once_and_never_committed():
    s = Harness()
    await s.rebalance(1, 0, 1)
    s.serve(0)
    await s.handover.lose_all()
    assert s.group.log[-1] == "lost [0, 1]"
    assert s.queues.owned_partitions == frozenset()
    assert s.assignor.generation == -1
    s.group.take_log()
    assert not await s.handover.committer.commit() or s.group.take_log() == []


async def test_a_loss_while_offsets_are_queried_takes_no_partition():
    s = Harness()
    await s.rebalance(1, 0)
    s.group.take_log()
    s.group.query_gate = asyncio.Event()
    pending = asyncio.ensure_future(s.rebalance(2, 0, 1))
    await eventually(lambda: s.group.log == ["query [1]"])
    s.handover.lose_all()
    s.group.query_gate.set()
    assert not await pending
    assert s.queues.owned_partitions == frozenset()
    assert s.group.take_log() == ["query [1]", "lost [0]"], "only announced partitions are announced as lost"


async def test_a_loss_while_a_listener_loads_state_is_announced_afterwards():
    s = Harness()
    gate = gated(s, "taken")
    pending = asyncio.ensure_future(s.rebalance(1, 0))
    for _ in range(5):
        await asyncio.sleep(0)
    lost = s.handover.lose_all()
    gate.set()
    assert not await pending
    await lost
    assert s.group.take_log() == ["query [0]", "taken [0]", "lost [0]"], "nothing is fetched"


# A log that was re-created


async def test_a_cut_off_partition_serves_its_backlog_commits_nothing_and_is_lost_at_its_move():
    s = Harness()
    s.group.group = {0: 2}
    await s.rebalance(1, 0)
    s.queues.put(0, records(2, 2), 1)
    s.queues.cut_off(0, "re-created")
    s.queues.put(0, records(4, 3), 1)
    while found := s.queues.take():
        s.end(*found)
    assert (s.queues[0].position, s.queues[0].committable_offset) == (4, None)
    s.group.take_log()
    await s.rebalance(2)
    assert s.group.take_log() == ["lost [0]", "fetch [] from {}"]
    assert s.assignor.handed_over == {}, "its offset is useless to the next owner"


async def test_a_committed_offset_of_another_log_is_not_used():
    s = Harness()
    s.group.group, s.group.foreign = {0: 7, 1: 7}, {0}
    await s.rebalance(1, 0, 1)
    for partition in (0, 1):
        s.queues.put(partition, records(7, 1), 1)
    assert s.queues.take()[0] is s.queues[1]
    assert s.queues.take() is None
    assert s.queues[0].cut_off_reason


# Leaving


async def test_leaving_finishes_commits_and_releases_all_partitions():
    s = Harness()
    await s.rebalance(1, 0, 1)
    s.serve(0, 2)
    in_flight = s.start(1)
    s.group.take_log()
    leaving = asyncio.ensure_future(s.handover.give_up_all(1.0))
    await asyncio.sleep(0)
    assert s.queues.served_partitions == ()
    s.end(*in_flight)
    await leaving
    assert s.group.take_log() == ["commit {0: 2, 1: 1}", "released [0, 1]"]
    assert s.queues.owned_partitions == frozenset()


async def test_an_event_that_is_not_done_in_time_stays_uncommitted():
    s = Harness()
    await s.rebalance(1, 0)
    s.serve(0)
    queue, batch = s.start(0)
    await s.handover.give_up_all(0.01)
    assert s.group.group == {0: 1}
    s.end(queue, batch)
    await s.handover.committer.commit()
    assert s.group.group == {0: 1}


# Leaving without an answer


async def test_abandoning_loses_all_partitions():
    s = Harness()
    await s.rebalance(1, 0, 1, 2)
    s.serve(0, 2)
    await s.handover.committer.commit()
    s.serve(0)
    s.start(1)
    s.group.take_log()
    await s.handover.abandon()
    assert s.group.take_log() == ["lost [0, 1, 2]"], "no commit is tried, and no partition is released"
    assert s.queues.owned_partitions == frozenset()


# Eager


async def test_an_eager_replica_stops_before_the_join_and_continues_with_its_backlog():
    s = Harness(is_eager=True)
    await s.rebalance(1, 0, 1)
    s.serve(0)
    s.queues.put(1, records(0, 2), 1)
    s.group.take_log()
    await s.handover.stop_serving()
    assert s.queues.served_partitions == ()
    assert s.group.take_log() == ["commit {0: 1}", "released [0, 1]"]
    assert not await s.handover.committer.commit() or s.group.take_log() == []
    assert s.queues.owned_partitions == {0, 1}, "claimed, so that a sticky leader leaves them here"

    await s.rebalance(2, 1, 2, handed_over={2: HandedOverOffset(9, 0)})
    assert s.group.take_log()[-2:] == ["taken [1, 2]", "fetch [1, 2] from {2: 9}"]
    assert s.queues.owned_partitions == {1, 2}
    assert offsets(s.queues.take()[1].events) == [0]


@pytest.mark.parametrize(("generation", "member_id"), [(3, "me-1"), (2, "me-2")])
async def test_an_eager_replica_drops_its_backlog_after_a_missed_rebalance(generation, member_id):
    s = Harness(is_eager=True)
    await s.rebalance(1, 0)
    s.queues.put(0, records(0, 4), 1)
    s.group.take_log()
    s.group.group, s.group.member_id = {0: 2}, member_id
    await s.rebalance(generation, 0)
    assert s.group.take_log() == ["released [0]", "fetch [] from {}", "query [0]", "taken [0]", "fetch [0] from {0: 2}"]
    assert s.queues.take() is None


async def test_an_eager_replica_does_not_wait_for_an_event_beyond_the_time_out(monkeypatch):
    s = Harness(is_eager=True)
    monkeypatch.setattr(handover_module, "STOP_TIMEOUT_S", 0.01)
    await s.rebalance(1, 0)
    in_flight = s.start(0)
    await s.rebalance(2)
    assert s.queues.owned_partitions == frozenset(), "another member owns it now"
    s.end(*in_flight)
    await s.handover.committer.commit()
    assert s.group.group == {}
