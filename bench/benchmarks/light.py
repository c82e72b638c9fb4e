"""Many members of one group in one process: each is the real consumer, with no work to do.

`python -m bench.benchmarks.light` runs until it is killed.
"""

import asyncio
import os
from dataclasses import dataclass

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


async def run(connection: Connection, settings: MemberSettings) -> None:
    """Run the members until cancelled, or until one of them fails."""
    topics = topics_of(connection, ScaledGroup())
    async with asyncio.TaskGroup() as group:
        for number in range(settings.first, settings.first + settings.count):
            member = PlanConsumer(f"{settings.replica}-{number}", connection, topics, _nothing, options=Options())
            group.create_task(member.run(asyncio.Event()))
            await asyncio.sleep(settings.each_s)


async def _nothing(_event: Event) -> None: ...


if __name__ == "__main__":
    asyncio.run(run(*read_settings(os.environ, MemberSettings)))
