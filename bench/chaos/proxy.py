"""A TCP proxy before a broker, in a thread of its own, that can be told to pass nothing on, or to be slow.

Clients find the broker where the proxy listens, because that is what the broker advertises; the way from them to it can
be cut without anybody being told, as when a cable is pulled.
"""

import asyncio
import socket
import threading
from contextlib import suppress
from enum import StrEnum
from types import TracebackType
from typing import Final

LOOPBACK: Final = "127.0.0.1"
CHUNK_BYTES: Final = 64 * 1024


class Mode(StrEnum):
    """What becomes of the bytes that arrive."""

    OPEN = "open"
    DROP = "drop"
    """Nothing passes, and nobody is told: no reset, no end of file. What was sent arrives once it is open again."""
    SLOW = "slow"


class Proxy:
    """Listens on a free port of loopback from the start. Use as a context manager, or `close`.

    target: port of loopback that it stands for; nobody need listen there yet, and who is refused there is cut off here.
    delay_s, bytes_per_s: in SLOW, what each chunk waits, and how fast the bytes of one connection pass.
    """

    def __init__(self, target: int, *, delay_s: float = 0.05, bytes_per_s: float = 1e6) -> None:
        self.target = target
        self._delay_s, self._bytes_per_s = delay_s, bytes_per_s
        self._mode = Mode.OPEN
        self._listening = socket.create_server((LOOPBACK, 0))
        self.port = int(self._listening.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._closing = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name=f"proxy of {target}", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def mode(self) -> Mode:
        """What it does now."""
        return self._mode

    def switch(self, mode: Mode) -> None:
        """From now on do this, with the connections that exist too."""
        self._mode = mode
        self._loop.call_soon_threadsafe(self._open.clear if mode is Mode.DROP else self._open.set)

    def close(self) -> None:
        """Cut every connection and stop listening."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # ends what is left, and its sockets
            runner.run(self._serve())

    async def _serve(self) -> None:
        with self._listening:
            self._listening.setblocking(False)
            self._loop.add_reader(self._listening, self._accept)
            await self._closing.wait()
            self._loop.remove_reader(self._listening)
        for one in self._connections:
            one.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self) -> None:
        """Let one in. asyncio's own server would forget whom it lets in as it is closed, and leave the socket open."""
        try:
            client, _ = self._listening.accept()
        except OSError:
            return  # gone again
        task = self._loop.create_task(self._connect(client))
        self._connections.add(task)

        def ended(_: object) -> None:
            self._connections.discard(task)
            client.close()  # also where it was cancelled before it began

        task.add_done_callback(ended)

    async def _connect(self, client: socket.socket) -> None:
        from_client, to_client = await asyncio.open_connection(sock=client)
        to_broker: asyncio.StreamWriter | None = None
        try:
            await self._open.wait()
            from_broker, to_broker = await asyncio.open_connection(LOOPBACK, self.target)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(from_client, to_broker))
                both.create_task(self._pump(from_broker, to_client))
        except* OSError:
            pass  # one side has cut it: so is the other, below
        finally:
            for one in (to_client, to_broker):
                if one is not None:
                    one.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Pass on what arrives; while nothing may pass it is not even read, so the sender's buffers fill up."""
        while chunk := await source.read(CHUNK_BYTES):
            if self._mode is Mode.SLOW:
                await asyncio.sleep(self._delay_s + len(chunk) / self._bytes_per_s)
            await self._open.wait()
            sink.write(chunk)
            await sink.drain()
        await self._open.wait()
        with suppress(OSError):
            sink.write_eof()


class Proxies:
    """The proxies of a cluster, one for each broker: `Broker(…, door=proxies.door)`. Closed once, all together."""

    def __init__(self) -> None:
        self._before: dict[int, Proxy] = {}

    def door(self, target: int) -> int:
        """Return where clients shall find what listens on `target`."""
        if target not in self._before:
            self._before[target] = Proxy(target)
        return self._before[target].port

    def switch(self, port: int, mode: Mode) -> None:
        """Do this from now on at the door that clients find at `port`, or that stands for it. Raises KeyError."""
        found = {one.port: one for one in self._before.values()} | self._before
        found[port].switch(mode)

    def close(self) -> None:
        """Cut every connection."""
        for one in self._before.values():
            one.close()
