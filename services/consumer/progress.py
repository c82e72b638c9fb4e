"""Reports what this replica does, every 250 ms and at each change of state."""

import asyncio
from collections.abc import Callable

import msgspec

from contracts.progress import PROGRESS_INTERVAL_S, Progress
from services.consumer.output import Output


class ProgressReporter:
    """Writes one Progress at a time: while the broker is away, reports are skipped and not piled up."""

    def __init__(self, output: Output, topic: str, snapshot: Callable[[], Progress]) -> None:
        self._output = output
        self._topic = topic
        self._snapshot = snapshot
        self._changed = asyncio.Event()
        self._under_way: asyncio.Future[None] | None = None

    def changed(self) -> None:
        """Report at once: the replica's state has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            try:
                await asyncio.wait_for(self._changed.wait(), PROGRESS_INTERVAL_S)
            except TimeoutError:
                if self._under_way is not None and not self._under_way.done():
                    continue
            self._changed.clear()
            await self.report()

    async def report(self) -> None:
        """Write one report."""
        progress = self._snapshot()
        value = msgspec.json.encode(progress)
        self._under_way = await self._output.send(self._topic, progress.replica.encode(), value)
