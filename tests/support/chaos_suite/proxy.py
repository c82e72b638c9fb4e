"""A TCP proxy in front of a broker that can drop or delay all traffic. It has its own thread.

The broker advertises the proxy's port. Connections stay open while traffic is dropped, as if a cable was pulled.
"""

import asyncio
import socket
import threading
from contextlib import suppress
from enum import StrEnum
from typing import Final

from tailpack.local.broker_config import PROPERTIES

LOOPBACK: Final = "127.0.0.1"
CHUNK_BYTES: Final = 64 * 1024
BEHIND_PROXIES: Final = (
    PROPERTIES.replace(
        "CONTROLLER://127.0.0.1:{controller_port}", "BETWEEN://127.0.0.1:0,CONTROLLER://127.0.0.1:{controller_port}"
    )
    .replace("{advertised_port}", "{advertised_port},BETWEEN://127.0.0.1:0\ninter.broker.listener.name=BETWEEN")
    .replace("PLAINTEXT:PLAINTEXT,", "PLAINTEXT:PLAINTEXT,BETWEEN:PLAINTEXT,")
)
"""Properties of nodes whose clients connect through proxies; the nodes reach each other directly."""


class Mode(StrEnum):
    OPEN = "open"
    DROP = "drop"  # no reset and no end of file: what was sent arrives once the proxy is open again
    SLOW = "slow"


class Proxy:
    """Listens on a free local port. Use it as a context manager, or call `close`.

    target: local port to which it connects. If no process listens there, clients are disconnected.
    delay_s, bytes_per_s: delay of each chunk, and bandwidth of each connection, in mode SLOW.
    """

    def __init__(self, target: int, *, delay_s: float = 0.05, bytes_per_s: float = 1e6) -> None:
        self._target = target
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def switch(self, mode: Mode) -> None:
        """Change the mode. It also applies to existing connections."""
        self._mode = mode
        self._loop.call_soon_threadsafe(self._open.clear if mode is Mode.DROP else self._open.set)

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        with self._listening:
            self._listening.setblocking(False)
            self._loop.add_reader(self._listening, self._accept)
            await self._closing.wait()
            self._loop.remove_reader(self._listening)
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self) -> None:
        """Accept connections. Asyncio's server would leave sockets open of clients that connect while it closes."""
        try:
            client, _ = self._listening.accept()
        except OSError:
            return  # the client has left
        task = self._loop.create_task(self._connect(client))
        self._connections.add(task)

        def ended(_: object) -> None:
            self._connections.discard(task)
            client.close()  # also if the task was cancelled before it began

        task.add_done_callback(ended)

    async def _connect(self, client: socket.socket) -> None:
        from_client, to_client = await asyncio.open_connection(sock=client)
        to_broker: asyncio.StreamWriter | None = None
        try:
            await self._open.wait()
            from_broker, to_broker = await asyncio.open_connection(LOOPBACK, self._target)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(from_client, to_broker))
                both.create_task(self._pump(from_broker, to_client))
        except* OSError:
            pass  # one side has closed; the other is closed below
        finally:
            for side in (to_client, to_broker):
                if side is not None:
                    side.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """While the proxy drops, nothing is read, so the sender's buffers fill up."""
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
    """One proxy for each broker of a cluster: `Broker(…, advertised_port=proxies.advertised_port)`."""

    def __init__(self) -> None:
        self._by_target: dict[int, Proxy] = {}

    def advertised_port(self, target: int) -> int:
        """Return the port that stands for `target`."""
        if target not in self._by_target:
            self._by_target[target] = Proxy(target)
        return self._by_target[target].port

    def switch(self, port: int, mode: Mode) -> None:
        """`port`: of the proxy, or of its target. Raises KeyError."""
        found = {proxy.port: proxy for proxy in self._by_target.values()} | self._by_target
        found[port].switch(mode)

    def close(self) -> None:
        for proxy in self._by_target.values():
            proxy.close()
