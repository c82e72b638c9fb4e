"""How long a replica that leaves waits for Kafka: while any broker answers, to its deadline; else hardly at all."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from aiokafka.errors import KafkaError

LOOK_S: Final = 0.2
"""Between two looks whether somebody has answered. A handover is mostly over before the first."""
LOOKS: Final = 6
"""So many in a row in vain: what is left can be neither committed nor handed over. Counted, because a process that was
frozen finds any length of time gone at its first look."""
SILENCE_S: Final = LOOK_S * LOOKS


async def silence(
    nodes: Callable[[], Iterable[int]], ask: Callable[[int], Awaitable[object]], *, look_s: float = LOOK_S
) -> None:
    """Return once none of the brokers `nodes` has answered for so many looks.

    All are asked, each one question at a time: one that hangs must not hide that others answer. `ask` raises KafkaError
    where a broker is not there.
    """
    asked: dict[int, asyncio.Future[None]] = {}
    heard = asyncio.Event()

    async def listen(node: int) -> None:
        try:
            await ask(node)
            heard.set()
        except KafkaError:
            pass  # the next look asks again

    await asyncio.sleep(look_s)
    in_vain = 0
    try:
        while in_vain < LOOKS:
            asked |= {
                node: asyncio.ensure_future(listen(node)) for node in nodes() if node not in asked or asked[node].done()
            }
            await asyncio.sleep(look_s)
            in_vain = 0 if heard.is_set() else in_vain + 1
            heard.clear()
    finally:
        await _cancel(*asked.values())


async def unless(
    duty: Coroutine[Any, Any, Any], signal: Coroutine[Any, Any, Any], deadline_s: float | None = None
) -> bool:
    """Run `duty` until it is done, or `signal` is; return whether it was done. Raises TimeoutError at the deadline."""
    doing, waiting = asyncio.ensure_future(duty), asyncio.ensure_future(signal)
    try:
        done, _ = await asyncio.wait([doing, waiting], timeout=deadline_s, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise TimeoutError
        ended = doing if doing in done else waiting
        ended.result()
        return ended is doing
    finally:
        await _cancel(doing, waiting)


def served_again(uncommitted: Mapping[int, range]) -> str:
    """Return in words which events begun are not committed, partition → offsets. At most: offsets may have gaps."""
    if not uncommitted:
        return "no event that was begun is left uncommitted"
    count = sum(map(len, uncommitted.values()))
    where = ", ".join(f"{partition} from {offsets.start}" for partition, offsets in sorted(uncommitted.items()))
    return f"at most {count} events were begun and not committed, and will be served again (partition {where})"


async def _cancel(*futures: "asyncio.Future[Any]") -> None:
    for each in futures:
        each.cancel()
    await asyncio.gather(*futures, return_exceptions=True)
