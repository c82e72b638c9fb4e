"""Commits with exactly_once: refused outputs are kept, and a refused member gives up its membership."""

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka import errors
from aiokafka.structs import OffsetAndMetadata, TopicPartition
from consumer_fakes import TOPIC, FakeCoordinator, records

from services.consumer.interface import Event
from services.consumer.outbox import Outbox
from services.consumer.partition_queue import PartitionQueues
from services.consumer.requests import UNSTABLE_OFFSET_COMMIT, stable_offsets
from services.consumer.transaction import MAX_CONSECUTIVE_LOSSES, AtomicCommitter, TransactionLostError


class Broker:
    """Accepts transactions, or raises the next of `answers`."""

    def __init__(self) -> None:
        self.answers: list[Exception] = []
        self.written: list[tuple[list[bytes], dict[int, int], tuple[int, str]]] = []
        self.go_on: asyncio.Event | None = None

    async def write(self, records, offsets, member) -> None:
        if self.go_on:
            await self.go_on.wait()
        if self.answers:
            raise self.answers.pop(0)
        offsets = {at.partition: event.offset for at, event in offsets.items()}
        self.written.append(([record.value for record in records], offsets, member))


class Member(FakeCoordinator):
    """Records a reset of the membership."""

    def reset_generation(self) -> None:
        self.log.append("reset")
        self.member_id, self.generation = "", -1


class Harness:
    """A member of generation 5 with partition 0 and an outbox."""

    def __init__(self) -> None:
        self.queues = PartitionQueues(per_partition=1, batch_size=1)
        self.group, self.broker = Member(generation=5, member_id="me"), Broker()
        self.outbox = Outbox(self.queues.early_commit)
        self.queues.open({0: 0}, 1, 5)
        where = (self.group, self.queues, TOPIC, 0.001)
        self.committer = AtomicCommitter(*where, outbox=self.outbox, transactions=self.broker)
        self.committer.resume(5)

    async def serve(self, first: int, count: int) -> None:
        async def shout(events) -> None:
            await self.outbox.send("out", None, str(events[0].offset).encode())

        queue = self.queues[0]
        queue.put(records(first, count), 1, 1.0)
        for offset in range(first, first + count):
            batch = queue.start(1)
            event = Event(TOPIC, 0, offset, None, None, (), 0, received_us=1, epoch=1, generation=queue.generation)
            await self.outbox.wrap_handler(shout)([event])
            queue.handler_returned(batch)
            queue.finish(batch)


async def test_outputs_are_committed_once_with_their_offsets_in_the_members_name():
    s = Harness()
    await s.serve(0, 3)
    assert await s.committer.commit()
    assert await s.committer.commit()
    assert s.broker.written == [([b"0", b"1", b"2"], {0: 3}, (5, "me"))]


@pytest.mark.parametrize("answer", [errors.RebalanceInProgressError(), errors.RequestTimedOutError()])
async def test_outputs_of_a_failed_commit_are_committed_later(answer):
    s = Harness()
    await s.serve(0, 1)
    s.broker.answers = [answer]
    assert not await s.committer.commit()
    await s.serve(1, 1)
    assert await s.committer.commit()
    assert s.broker.written == [([b"0", b"1"], {0: 2}, (5, "me"))]
    assert "reset" not in s.group.log


@pytest.mark.parametrize(
    "answer", [errors.UnknownMemberIdError(), errors.IllegalGenerationError(), TransactionLostError()]
)
async def test_a_refused_member_gives_up_its_membership(answer):
    s = Harness()
    await s.serve(0, 1)
    s.broker.answers = [answer]
    assert not await s.committer.commit()
    assert s.group.log == ["reset"]


async def test_a_refusal_of_an_old_generation_does_not_end_the_current_membership():
    s = Harness()
    await s.serve(0, 1)
    s.broker.go_on, s.broker.answers = asyncio.Event(), [errors.IllegalGenerationError()]
    pending = asyncio.ensure_future(s.committer.commit())
    await asyncio.sleep(0.001)
    s.group.generation = 6
    s.committer.resume(6)
    s.broker.go_on.set()
    assert not await pending
    assert s.group.log == []
    assert await s.committer.commit()
    assert s.broker.written == [([b"0"], {0: 1}, (6, "me"))]


async def test_a_replica_ends_after_several_lost_transactions():
    s = Harness()
    await s.serve(0, 1)
    s.broker.answers = [TransactionLostError("fenced")] * MAX_CONSECUTIVE_LOSSES
    for _ in range(MAX_CONSECUTIVE_LOSSES - 1):
        assert not await s.committer.commit()
        s.group.generation, s.group.member_id = 5, "me"
    with pytest.raises(TransactionLostError):
        await s.committer.commit()


async def test_a_transaction_ends_before_the_next_even_if_its_caller_was_cancelled():
    s = Harness()
    await s.serve(0, 1)
    s.broker.go_on = asyncio.Event()
    waiting = asyncio.ensure_future(s.committer.commit())
    await asyncio.sleep(0.001)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    following = asyncio.ensure_future(s.committer.commit())
    await s.serve(1, 1)
    s.broker.go_on.set()
    assert await following
    assert [values for values, _, _ in s.broker.written] == [[b"0"], [b"1"]]


async def test_only_new_outputs_of_a_partition_that_was_taken_again_are_written():
    s = Harness()
    await s.serve(0, 3)
    s.queues.drop([0])
    s.group.generation = 6
    s.committer.resume(6)
    s.queues.open({0: 2}, 1, 6)
    await s.serve(2, 1)
    assert await s.committer.commit()
    assert s.broker.written == [([b"2"], {0: 3}, (6, "me"))]


def answer(*partitions: tuple[int, int, int], error: int = 0) -> SimpleNamespace:
    entries = [(partition, offset, -1, "", code, {}) for partition, offset, code in partitions]
    return SimpleNamespace(topics=[(TOPIC, entries, {})], error_code=error)


def test_missing_offsets_are_left_out_and_unstable_ones_are_retriable():
    assert stable_offsets(answer((0, 7, 0), (1, -1, 0)), "g") == {TopicPartition(TOPIC, 0): OffsetAndMetadata(7, "")}
    with pytest.raises(errors.GroupLoadInProgressError) as raised:
        stable_offsets(answer((0, 7, 0), (1, -1, UNSTABLE_OFFSET_COMMIT)), "g")
    assert raised.value.retriable
    for response in (answer((0, -1, 16)), answer(error=16)):
        with pytest.raises(errors.NotCoordinatorForGroupError):
            stable_offsets(response, "g")
