"""Many light members of one group in one process: each is the real consumer, with nothing to do.

`python -m services.light` runs until it is killed, and writes every second how many requests its clients have
sent, which is all that can be counted of the broker's requests without a word from the broker, and how many serve.
"""

import asyncio
import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol import metadata
from aiokafka.protocol.struct import Struct

from contracts.connection import Connection, read_settings
from contracts.settings import Settings
from contracts.topics import ScaledGroup
from services.consumer import Event, Options, PlanConsumer
from services.consumer.environment import topics_of


@dataclass(frozen=True, kw_only=True)
class MemberSettings(Settings):
    """Environment of the process: TAILPACK_REPLICA, TAILPACK_FIRST, …"""

    replica: str
    """What the names of members begin with."""
    first: int
    """Number of the first member."""
    count: int
    each_s: float
    """From the start of a member to that of the next, seconds: those of a real group do not share a processor then."""
    counted: str
    """File that takes the number of requests, and of members that serve."""


class Counted:
    """Counts every request of every aiokafka client in this process."""

    def __init__(self) -> None:
        self.requests = 0
        send = AIOKafkaConnection.send

        def counting(connection: Any, request: Any, expect_response: bool = True) -> Any:
            self.requests += 1
            return send(connection, request, expect_response)

        AIOKafkaConnection.send = counting


def decode_metadata_once() -> None:
    """Let the members share what a broker says of its partitions: 0.25 s of Python for ten thousand of them.

    Members of a real group spend that side by side, each in a process of its own.
    """
    whole: Any = Struct.decode

    @functools.lru_cache(maxsize=4)
    def decoded(kind: Any, answer: bytes) -> Any:
        return whole.__func__(kind, answer)

    for kind in vars(metadata).values():
        if isinstance(kind, type) and kind.__name__.startswith("MetadataResponse"):
            kind.decode = classmethod(lambda own, answer: decoded(own, answer.read()))  # type: ignore[attr-defined, arg-type]


async def run(connection: Connection, settings: MemberSettings) -> None:
    """Run the members until cancelled, or until one of them cannot go on."""
    decode_metadata_once()
    counted, last = Counted(), settings.first + settings.count
    members = [_member(connection, f"{settings.replica}-{k}") for k in range(settings.first, last)]
    group = asyncio.gather(*(_run(member, settings.each_s * k) for k, member in enumerate(members)))
    while not group.done():
        _write(Path(settings.counted), f"{counted.requests} {sum(map(_serves, members))}")
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
    """A reader never sees half of it."""
    unfinished = file.with_name(f".{file.name}")
    unfinished.write_text(text, encoding="ascii")
    unfinished.replace(file)


def _member(connection: Connection, name: str) -> PlanConsumer:
    return PlanConsumer(name, connection, topics_of(connection, ScaledGroup()), _nothing, options=Options())


async def _nothing(_event: Event) -> None: ...


if __name__ == "__main__":
    asyncio.run(run(*read_settings(os.environ, MemberSettings)))
