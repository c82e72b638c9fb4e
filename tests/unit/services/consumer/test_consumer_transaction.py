"""Commits of exactly_once: what is not committed stays to be, and who is refused gives everything up."""

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
    """Takes transactions, or answers with what it was told."""

    def __init__(self) -> None:
        self.answers: list[Exception] = []
        self.taken: list[tuple[list[bytes], dict[int, int], tuple[int, str]]] = []
        self.go_on: asyncio.Event | None = None

    async def write(self, records, offsets, member) -> None:
        if self.go_on:
            await self.go_on.wait()
        if self.answers:
            raise self.answers.pop(0)
        offsets = {at.partition: one.offset for at, one in offsets.items()}
        self.taken.append(([record.value for record in records], offsets, member))


class Member(FakeCoordinator):
    """Notes that it gave everything up."""

    def reset_generation(self) -> None:
        self.asked.append("reset")
        self.member_id, self.generation = "", -1


class Story:
    """Partition 0 of generation 5 with three events done, each with an output."""

    def __init__(self) -> None:
        self.group, self.broker, self.outbox = Member(generation=5, member_id="me"), Broker(), Outbox()
        self.queues = PartitionQueues(per_partition=1, batch_size=1)
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
            taken = queue.start(1)
            one = Event(TOPIC, 0, offset, None, None, (), 0, received_us=1, epoch=1, generation=queue.generation)
            await self.outbox.wrap_handler(shout)([one])
            queue.handler_returned(taken)
            queue.finish(taken)


async def test_outputs_go_with_the_offsets_in_the_name_of_the_member_and_once():
    s = Story()
    await s.serve(0, 3)
    assert await s.committer.commit()
    assert await s.committer.commit()
    assert s.broker.taken == [([b"0", b"1", b"2"], {0: 3}, (5, "me"))]


@pytest.mark.parametrize("answer", [errors.RebalanceInProgressError(), errors.RequestTimedOutError()])
async def test_what_could_not_be_committed_now_is_committed_later(answer):
    s = Story()
    await s.serve(0, 1)
    s.broker.answers = [answer]
    assert not await s.committer.commit()
    await s.serve(1, 1)
    assert await s.committer.commit()
    assert s.broker.taken == [([b"0", b"1"], {0: 2}, (5, "me"))]
    assert "reset" not in s.group.asked


@pytest.mark.parametrize(
    "answer", [errors.UnknownMemberIdError(), errors.IllegalGenerationError(), TransactionLostError()]
)
async def test_who_is_refused_as_a_member_gives_everything_up(answer):
    s = Story()
    await s.serve(0, 1)
    s.broker.answers = [answer]
    assert not await s.committer.commit()
    assert s.group.asked == ["reset"]


async def test_a_refusal_of_the_generation_before_is_no_loss_of_the_present_one():
    s = Story()
    await s.serve(0, 1)
    s.broker.go_on, s.broker.answers = asyncio.Event(), [errors.IllegalGenerationError()]
    under_way = asyncio.ensure_future(s.committer.commit())
    await asyncio.sleep(0.001)
    s.group.generation = 6
    s.committer.resume(6)
    s.broker.go_on.set()
    assert not await under_way
    assert s.group.asked == []
    assert await s.committer.commit()
    assert s.broker.taken == [([b"0"], {0: 1}, (6, "me"))]


async def test_a_replica_whose_transactions_are_ended_again_and_again_ends():
    s = Story()
    await s.serve(0, 1)
    s.broker.answers = [TransactionLostError("fenced")] * MAX_CONSECUTIVE_LOSSES
    for _ in range(MAX_CONSECUTIVE_LOSSES - 1):
        assert not await s.committer.commit()
        s.group.generation, s.group.member_id = 5, "me"
    with pytest.raises(TransactionLostError):
        await s.committer.commit()


async def test_a_transaction_that_nobody_waits_for_any_longer_comes_to_its_end_before_the_next():
    s = Story()
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
    assert [values for values, _, _ in s.broker.taken] == [[b"0"], [b"1"]]


async def test_of_a_partition_that_was_lost_and_taken_again_only_the_new_part_is_written():
    s = Story()
    await s.serve(0, 3)
    s.queues.drop([0])
    s.group.generation = 6
    s.committer.resume(6)
    s.queues.open({0: 2}, 1, 6)
    await s.serve(2, 1)
    assert await s.committer.commit()
    assert s.broker.taken == [([b"2"], {0: 3}, (6, "me"))]


def answer(*partitions: tuple[int, int, int], error: int = 0) -> SimpleNamespace:
    each = [(partition, offset, -1, "", code, {}) for partition, offset, code in partitions]
    return SimpleNamespace(topics=[(TOPIC, each, {})], error_code=error)


def test_offsets_that_nobody_committed_are_left_out_and_those_of_an_open_transaction_are_asked_for_again():
    assert stable_offsets(answer((0, 7, 0), (1, -1, 0)), "g") == {TopicPartition(TOPIC, 0): OffsetAndMetadata(7, "")}
    with pytest.raises(errors.GroupLoadInProgressError) as again:
        stable_offsets(answer((0, 7, 0), (1, -1, UNSTABLE_OFFSET_COMMIT)), "g")
    assert again.value.retriable
    for wrong in (answer((0, -1, 16)), answer(error=16)):
        with pytest.raises(errors.NotCoordinatorForGroupError):
            stable_offsets(wrong, "g")
