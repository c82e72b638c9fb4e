"""What a topic takes is asked for once, and known before anything is sent there."""

import pytest
from aiokafka.errors import MessageSizeTooLargeError

from contracts.connection import Connection
from services.consumer import record_sizes
from services.consumer.record_sizes import OVERHEAD, RecordSizes


async def test_each_topic_is_asked_about_once_and_batches_fit_into_the_smallest(monkeypatch):
    asked: list[list[str]] = []

    async def largest_records(_: Connection, topics: list[str]) -> dict[str, int]:
        asked.append(topics)
        return {topic: {"small": 1000}.get(topic, 50_000) for topic in topics}

    monkeypatch.setattr(record_sizes, "largest_records", largest_records)
    batches: list[int] = []
    sizes = RecordSizes(Connection(bootstrap_servers="127.0.0.1:1"), batches.append)
    await sizes.learn(["large"])
    await sizes.check("small", b"k", b"x" * (1000 - OVERHEAD - 1))
    with pytest.raises(MessageSizeTooLargeError, match="the record has 874 bytes; small takes 872"):
        await sizes.check("small", b"kk", b"x" * (1000 - OVERHEAD))
    await sizes.check("large", None, b"x" * 40_000)
    assert asked == [["large"], ["small"]]
    assert batches == [50_000, 1000]
