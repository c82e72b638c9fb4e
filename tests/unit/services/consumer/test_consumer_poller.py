"""The poller: which Kafka errors a replica retries, and which end it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import errors
from aiokafka.structs import TopicPartition
from consumer_fakes import TOPIC, eventually, records

from services.consumer import ReplicaError, poller
from services.consumer.partition_queue import PartitionQueues
from services.consumer.poller import FATAL_ERRORS, MAX_PROBLEM_S, Poller


class Consumer:
    """Answers polls in turn with batches or errors; the last answer is repeated."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.polls = 0
        task = asyncio.get_running_loop().create_future()
        self._fetcher = SimpleNamespace(_records={})
        self._client = SimpleNamespace(is_whole=False)
        self._coordinator = SimpleNamespace(_coordination_task=task)

        self.sought: dict[TopicPartition, int] = {}
        self.seek = self.sought.__setitem__

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition(TOPIC, 0)}

    async def getmany(self, *, timeout_ms: int) -> Any:
        await asyncio.sleep(0)
        self.polls += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def polling(consumer: Consumer, clock: Any = lambda: 0.0) -> tuple[Poller, PartitionQueues]:
    queues = PartitionQueues(per_partition=1, batch_size=1)
    queues.open({0: 0}, epoch=1)
    return Poller(consumer, queues, TOPIC, clock), queues


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "RETRY_PAUSE_S", 0)


@pytest.mark.parametrize("fatal", FATAL_ERRORS, ids=lambda kind: kind.__name__)
async def test_a_fatal_error_ends_the_replica_at_once(fatal):
    consumer = Consumer(fatal())
    with pytest.raises(fatal):
        await asyncio.wait_for(polling(consumer)[0].run(), 1)
    assert consumer.polls == 1


async def test_a_retriable_error_is_retried_without_limit():
    now_s = 0.0

    def clock() -> float:
        nonlocal now_s
        now_s += MAX_PROBLEM_S
        return now_s

    away = [errors.KafkaConnectionError() for _ in range(50)]
    consumer = Consumer(*away, {TopicPartition(TOPIC, 0): records(0, 2)}, {})
    tested, queues = polling(consumer, clock)
    running = asyncio.ensure_future(tested.run())
    await eventually(lambda: len(queues[0].backlog) == 2)
    running.cancel()
    assert consumer.sought == {TopicPartition(TOPIC, 0): 0}, "what a failed poll had read is fetched again"


async def test_a_non_retriable_error_that_lasts_ends_the_replica():
    now_s = 0.0

    def clock() -> float:
        nonlocal now_s
        now_s += MAX_PROBLEM_S / 3
        return now_s

    strange = errors.KafkaError("UnknownError()")
    consumer = Consumer(strange, strange, {}, strange)
    with pytest.raises(errors.KafkaError, match="UnknownError"):
        await asyncio.wait_for(polling(consumer, clock)[0].run(), 1)
    assert consumer.polls > 5, "a successful poll restarts the time"


async def test_an_ended_coordination_task_or_an_error_outside_kafka_ends_the_replica():
    consumer = Consumer(errors.KafkaConnectionError())
    consumer._coordinator._coordination_task.set_result(None)
    with pytest.raises(errors.KafkaConnectionError):
        await asyncio.wait_for(polling(consumer)[0].run(), 1)
    with pytest.raises(ReplicaError, match="ValueError: heartbeat"):
        await asyncio.wait_for(polling(Consumer(ValueError("heartbeat")))[0].run(), 1)
