"""Commits are sent only under the current generation, never while joining or without membership."""

import asyncio

import pytest
from aiokafka import errors
from consumer_fakes import TOPIC, FakeCoordinator, records

from services.consumer import output, partition_queue
from services.consumer.output import Committer
from services.consumer.partition_queue import PartitionQueues


class Harness:
    """A member of generation 5 with three done events in each of partitions 0 and 1."""

    def __init__(self) -> None:
        self.group = FakeCoordinator(generation=5)
        self.queues = PartitionQueues(per_partition=1, batch_size=1)
        self.queues.open({0: 0, 1: 0}, epoch=1)
        self.committer = Committer(self.group, self.queues, TOPIC, interval_s=0.001)
        self.committer.resume(5)
        for partition in (0, 1):
            self.serve(partition, 0, 3)

    def serve(self, partition: int, first: int, count: int) -> None:
        queue = self.queues[partition]
        queue.put(records(first, count), 1, 1.0)
        for _ in range(count):
            batch = queue.start(1)
            queue.handler_returned(batch)
            queue.finish(batch)


@pytest.mark.parametrize("reason", ["the group is in another generation", "no membership", "suspended", "joining"])
async def test_no_commit_is_sent(reason):
    s = Harness()
    if reason == "suspended":
        s.committer.suspend()
    elif reason == "joining":
        s.group.is_joining = True
    else:
        s.group.generation = 6 if "another" in reason else -1
        s.committer.resume(s.group.generation if "no" in reason.split() else 5)
    assert not await s.committer.commit()
    assert not await s.committer.last_commit()
    assert s.group.take_log() == []


@pytest.mark.parametrize("answer", output.FENCED_ERRORS)
async def test_a_refused_commit_is_not_confirmed_and_a_later_one_includes_it(answer):
    s = Harness()
    s.group.answers = [answer()]
    assert not await s.committer.commit()
    assert await s.committer.commit()
    assert s.group.take_log() == ["commit {0: 3, 1: 3}"], "a later commit includes it"


async def test_a_non_retriable_commit_error_is_raised():
    s = Harness()
    s.group.answers = [errors.GroupAuthorizationFailedError("group")]
    with pytest.raises(errors.GroupAuthorizationFailedError):
        await s.committer.commit()


async def test_the_last_commit_is_retried_while_the_coordinator_moves():
    s = Harness()
    s.group.answers = [errors.NotCoordinatorForGroupError(), errors.GroupLoadInProgressError()]
    assert await s.committer.last_commit()
    assert s.group.take_log() == ["commit {0: 3, 1: 3}"]


async def test_the_last_commit_is_not_retried_without_membership():
    s = Harness()

    class Fenced(FakeCoordinator):
        async def _do_commit_offsets(self, assignment, at):
            self.generation = -1  # aiokafka throws its membership away
            raise errors.UnknownMemberIdError

    s.committer._coordinator = Fenced(generation=5)
    async with asyncio.timeout(1):
        assert not await s.committer.last_commit()


@pytest.mark.parametrize("error", output.UNANSWERED_ERRORS)
async def test_after_an_unanswered_commit_only_the_same_offset_is_sent_until_the_next_generation(error):
    s = Harness()
    s.group.answers = [error()]
    assert not await s.committer.commit()
    assert s.group.take_log() == ["rejoin"], "the next generation voids it"
    s.serve(0, 3, 1)
    assert not await s.committer.commit(), "partition 0 is further than the commit that may arrive late"
    assert s.group.take_log() == ["commit {1: 3}"]
    s.group.generation = 6
    s.committer.resume(6)
    assert await s.committer.commit()
    assert s.group.group == {0: 4, 1: 3}


async def test_no_event_starts_while_commits_fail_for_too_long():
    s = Harness()
    s.committer._max_age_s = -1.0
    s.queues.put(0, records(3, 1), 1)
    s.group.answers = [errors.GroupCoordinatorNotAvailableError()]
    assert not await s.committer.commit()
    assert s.queues.take() is None
    s.committer._max_age_s = 60.0
    assert await s.committer.commit()
    assert s.queues.take() is not None


async def test_no_event_starts_while_too_many_of_its_partition_are_uncommitted(monkeypatch):
    monkeypatch.setattr(partition_queue, "MAX_UNCOMMITTED", 4)
    s = Harness()
    for partition in (0, 1):
        s.queues.put(partition, records(3, 3), 1)
    started = []
    while work := s.queues.take():
        queue, batch = work
        started.append((queue.partition, batch.events[0].offset))
        s.queues.handler_returned(*work)
        if queue.partition:
            queue.finish(batch)
    assert sorted(started) == [(0, 3), (1, 3)], "three were begun before"
    assert s.queues.early_commit.is_set()
    assert await s.committer.commit()
    assert s.group.take_log() == ["commit {0: 3, 1: 4}"]
    assert [queue.uncommitted for _, queue in s.queues.items()] == [1, 0]
    assert s.queues.take() is not None, "the others wait no longer"


async def test_the_last_commit_ends_at_its_deadline(monkeypatch):
    s = Harness()
    monkeypatch.setattr(output, "LAST_COMMIT_TIMEOUT_S", 0.03)
    monkeypatch.setattr(output, "RETRY_INTERVAL_S", 0.005)
    s.group.answers = [errors.NotCoordinatorForGroupError() for _ in range(1000)]
    async with asyncio.timeout(1):
        assert not await s.committer.last_commit()


async def test_a_commit_in_progress_has_no_effect_on_a_partition_that_was_lost_and_taken_again():
    s = Harness()
    pending = asyncio.ensure_future(s.committer.commit())
    await asyncio.sleep(0)
    s.queues.drop([0])
    s.queues.open({0: 7}, epoch=2)
    assert await pending
    assert s.queues[0].committable_offset is None, "the answer belonged to the old queue"
    assert s.queues[0].position == 7
