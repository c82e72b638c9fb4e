"""Record size limits are queried once, before anything is sent to the topic."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import IncompatibleBrokerVersion, KafkaConnectionError, MessageSizeTooLargeError

from contracts.topics import DEFAULT_MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES
from services.consumer.topic_facts import RECORD_OVERHEAD_BYTES, RecordSizes


class Client:
    """A broker with a low limit for the topic `small`; it raises `errors` first."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.queries: list[list[str]] = []

    def get_random_node(self) -> int:
        return 1

    async def send(self, node: int, request: Any) -> Any:
        topics = [topic for _, topic, _ in request._resources]
        self.queries.append(topics)
        if self.errors:
            raise self.errors.pop()
        limits = {"small": "1000"}
        return SimpleNamespace(
            resources=[(0, "", 2, at, [(MAX_MESSAGE_BYTES, limits.get(at, "50000"))]) for at in topics]
        )


async def test_each_limit_is_queried_once_and_batches_obey_the_smallest():
    client, batches = Client(), []
    sizes = RecordSizes(client, batches.append)
    await sizes.query_limits(["large"])
    await sizes.check("small", b"k", b"x" * (1000 - RECORD_OVERHEAD_BYTES - 1))
    with pytest.raises(MessageSizeTooLargeError, match=r"874 bytes; small .* 872"):
        await sizes.check("small", b"kk", b"x" * (1000 - RECORD_OVERHEAD_BYTES))
    await sizes.check("large", None, b"x" * 40_000)
    assert client.queries == [["large"], ["small"]]
    assert batches == [50_000, 1000]


@pytest.mark.parametrize(("error", "queries"), [(KafkaConnectionError(), 2), (IncompatibleBrokerVersion(), 1)])
async def test_kafkas_default_limit_is_used_until_a_broker_answers(error, queries):
    client = Client(error)
    sizes = RecordSizes(client, lambda largest: None)
    assert await sizes.max_bytes("small") == DEFAULT_MAX_MESSAGE_BYTES - RECORD_OVERHEAD_BYTES
    await sizes.max_bytes("small")
    assert len(client.queries) == queries
