"""Many members of one group in one process: each is the real consumer, with no work to do.

`python -m bench.benchmarks.light` runs until it is killed. Every second it writes how many requests its clients have
sent, and how many members serve.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.conn import AIOKafkaConnection

from contracts.connection import Connection, read_settings
from contracts.settings import Settings
from contracts.topics import ScaledGroup
from services.consumer import Event, Options, PlanConsumer
from services.consumer.environment import topics_of


@dataclass(frozen=True, kw_only=True)
class MemberSettings(Settings):
    """Environment of the process."""

    replica: str
    """First part of the members' names."""
    first: int
    """Number of the first member."""
    count: int
    each_s: float
    """From the start of a member to that of the next, s. Members of a real group do not share a processor."""
    counted: str
    """File that takes both counts."""


def count_requests() -> list[int]:
    """Return a list whose only number is that of the requests of all aiokafka clients in this process."""
    counted, send = [0], AIOKafkaConnection.send

    def counting(connection: Any, request: Any, expect_response: bool = True) -> Any:
        counted[0] += 1
        return send(connection, request, expect_response)

    AIOKafkaConnection.send = counting
    return counted


async def run(connection: Connection, settings: MemberSettings) -> None:
    """Run the members until cancelled, or until one of them fails."""
    counted, numbers = count_requests(), range(settings.first, settings.first + settings.count)
    topics, options = topics_of(connection, ScaledGroup()), Options()
    members = [PlanConsumer(f"{settings.replica}-{k}", connection, topics, _nothing, options=options) for k in numbers]
    group = asyncio.gather(*(_run(member, settings.each_s * k) for k, member in enumerate(members)))
    while not group.done():
        _write(Path(settings.counted), f"{counted[0]} {sum(map(_serves, members))}")
        await asyncio.wait([group], timeout=1.0)
    await group


async def _run(member: PlanConsumer, after_s: float) -> None:
    await asyncio.sleep(after_s)
    await member.run(asyncio.Event())


def _serves(member: PlanConsumer) -> bool:
    try:
        member.health()
    except RuntimeError:  # it does not run yet
        return False
    return True


def _write(file: Path, text: str) -> None:
    unfinished = file.with_suffix(".part")
    unfinished.write_text(text, encoding="ascii")
    unfinished.replace(file)  # a reader never sees half of it


async def _nothing(_event: Event) -> None: ...


if __name__ == "__main__":
    asyncio.run(run(*read_settings(os.environ, MemberSettings)))
