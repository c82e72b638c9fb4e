"""Many light members of one group in one process: each is the real consumer, with nothing to do.

`python -m services.light` runs until it is killed, and writes every second how many requests its clients have
sent, which is all that can be counted of the broker's requests without a word from the broker.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.conn import AIOKafkaConnection

from contracts.connection import Connection, read_settings
from contracts.settings import Settings
from contracts.topics import Group, Topic, qualified
from services.consumer import Event, Options, PlanConsumer, Topics


@dataclass(frozen=True, kw_only=True)
class MemberSettings(Settings):
    """Environment of the process: TAILPACK_REPLICA, TAILPACK_FIRST, …"""

    replica: str
    """What the names of members begin with."""
    first: int
    """Number of the first member."""
    count: int
    counted: str
    """File that takes the number of requests."""


class Counted:
    """Counts every request of every aiokafka client in this process."""

    def __init__(self) -> None:
        self.requests = 0
        send = AIOKafkaConnection.send

        def counting(connection: Any, request: Any, expect_response: bool = True) -> Any:
            self.requests += 1
            return send(connection, request, expect_response)

        AIOKafkaConnection.send = counting


async def run(connection: Connection, settings: MemberSettings) -> None:
    """Run the members until cancelled, or until one of them cannot go on."""
    counted, last = Counted(), settings.first + settings.count
    group = asyncio.gather(
        *(_member(connection, f"{settings.replica}-{k}").run(asyncio.Event()) for k in range(settings.first, last))
    )
    while not group.done():
        _write(Path(settings.counted), counted.requests)
        await asyncio.wait([group], timeout=1.0)
    await group


def _write(file: Path, requests: int) -> None:
    """A reader never sees half of it."""
    unfinished = file.with_name(f".{file.name}")
    unfinished.write_text(str(requests), encoding="ascii")
    unfinished.replace(file)


def _member(connection: Connection, name: str) -> PlanConsumer:
    named = {topic: qualified(connection.namespace, topic) for topic in Topic}
    topics = Topics(
        group=qualified(connection.namespace, Group.PAYMENT),
        events=named[Topic.PAYMENTS_REQUESTED],
        plans=named[Topic.PLANS],
        progress=named[Topic.PROGRESS],
    )
    return PlanConsumer(name, connection, topics, _nothing, options=Options())


async def _nothing(_event: Event) -> None: ...


if __name__ == "__main__":
    asyncio.run(run(*read_settings(os.environ, MemberSettings)))
