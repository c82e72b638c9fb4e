"""What stands in for aiokafka's connections: requests and answers that take time, wait, and get lost."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaConnectionError
from aiokafka.util import wait_for
from theory.rebalance.processes import Call, Process, World

VERSIONS: Final = {0: 3, 1: 4, 2: 2, 3: 1, 8: 2, 9: 7, 10: 1, 11: 5, 12: 0, 13: 0, 14: 0, 15: 0, 22: 0}
"""API key → the version that the simulated broker speaks."""
GROUP_KEYS: Final = (8, 11, 12, 13, 14)
"""OffsetCommit, JoinGroup, Heartbeat, LeaveGroup, SyncGroup."""
LATENCY_S: Final = (0.0002, 0.004)
FOREVER: Final = float("inf")

Reply = Callable[[Any], None]
Serve = Callable[[int, Process, Any, Reply], None]


class Network:
    """Between processes and brokers (node → up or not). `serve` is the brokers' side."""

    def __init__(self, world: World, nodes: dict[int, bool], serve: Serve) -> None:
        self.world = world
        self.nodes = nodes
        self.serve = serve
        self.connections: list[Connection] = []
        self._holes: dict[tuple[str, int], float] = {}
        self.meddle: Callable[[Process], float] = lambda process: 0.0
        """Asked at each message of the group's protocol, there and back: how much later it arrives (s)."""
        self.answered: Callable[[Process, Any, Any, float], None] = lambda process, request, answer, sent_s: None
        """Told of each answer when a process reads it."""

    async def connect(self, host: str, port: int, **options: Any) -> "Connection":
        """Stand in for `aiokafka.client.create_conn`."""
        process = asyncio.get_running_loop()
        await asyncio.sleep(self._latency_s(f"{process.name} {port}"))
        while (heals_s := self.hole(process, port)) > self.world.now_s:
            if heals_s - self.world.now_s > options["request_timeout_ms"] / 1000:
                await asyncio.sleep(options["request_timeout_ms"] / 1000)
                raise TimeoutError
            await asyncio.sleep(heals_s - self.world.now_s)
        if not self.nodes[port] or process.is_dead:
            raise ConnectionRefusedError(f"node {port} is down")
        connection = Connection(self, process, port, options["request_timeout_ms"] / 1000, options.get("on_close"))
        self.connections.append(connection)
        return connection

    def cut(self, process: Process | None, node: int | None, until_s: float) -> None:
        """Drop what goes between a process and a node until then (None: all); what was sent arrives after it."""
        for one in [process.name] if process else [each.name for each in self.world.processes]:
            for other in self.nodes if node is None else [node]:
                self._holes[one, other] = until_s

    def hole(self, process: Process, node: int) -> float:
        """Return until when nothing goes through."""
        return self._holes.get((process.name, node), 0.0)

    def reset(self, process: Process | None, node: int | None) -> None:
        """Break the connections between a process and a node (None: all)."""
        for each in [*self.connections]:
            if process in (None, each.process) and node in (None, each.node):
                each.drop()

    def carry(self, connection: "Connection", request: Any, after_s: float, call: Call, *arguments: object) -> float:
        """Do something on the connection's other side when that has arrived; return when, in order."""
        late_s = self.meddle(connection.process) if request.API_KEY in GROUP_KEYS else 0.0
        when_s = max(
            after_s,
            self.world.now_s
            + self._latency_s(f"{connection.process.name} {connection.node} {request.API_KEY}")
            + late_s,
        )
        self.world.at(when_s, self._arrive, connection, call, arguments)
        return when_s

    def _arrive(self, connection: "Connection", call: Call, arguments: tuple[object, ...]) -> None:
        heals_s = self.hole(connection.process, connection.node)
        if heals_s > self.world.now_s:
            if heals_s < FOREVER:
                self.world.at(heals_s, self._arrive, connection, call, arguments)
        elif not connection.is_dropped:
            call(*arguments)

    def _latency_s(self, way: str) -> float:
        least, most = LATENCY_S
        chance = self.world.jitter(way)
        return least + (most - least) * chance**3 + (0.05 if chance > 0.998 else 0.0)


class Connection:
    """One connection. The broker serves its requests in order, one at a time."""

    def __init__(self, network: Network, process: Process, node: int, timeout_s: float, on_close: Any) -> None:
        self.network = network
        self.process = process
        self.node = node
        self.is_dropped = False
        self._request_timeout = timeout_s
        self._on_close = on_close
        self._is_open = True
        self._requests: deque[tuple[Any]] = deque()
        """What is to be answered, as one looks at aiokafka's: the future comes last."""
        self._last_action = network.world.now_s
        self._queue: deque[tuple[Any, Any, float]] = deque()
        self._is_busy = False
        self._there_s = self._back_s = 0.0

    def connected(self) -> bool:
        """Return whether the client believes that it is open."""
        return self._is_open

    def send(self, request: Any, expect_response: bool = True) -> Any:
        """Ask; an awaitable of the answer."""
        if not self._is_open:
            raise KafkaConnectionError("closed")
        future = self.process.create_future()
        self._requests.append((future,))
        made = request.prepare({key: (version, version) for key, version in VERSIONS.items()})
        sent_s = self.network.world.now_s
        self._there_s = self.network.carry(self, made, self._there_s, self._arrived, made, future, sent_s)
        return wait_for(future, self._request_timeout)

    def close(self, reason: Any = None, exc: BaseException | None = None) -> Any:
        """Close it: what was asked fails."""
        closed = self.process.create_future()
        closed.set_result(None)
        if self._is_open:
            self._is_open = False
            self.is_dropped = True
            self.network.connections.remove(self)
            for (future,) in self._requests:
                if not future.done():
                    future.set_exception(KafkaConnectionError("closed"))
            if self._on_close is not None:
                self._on_close(self, reason)
        return closed

    def drop(self) -> None:
        """Break it: neither side hears of what is under way."""
        self.is_dropped = True
        self.process.deliver(self.close, CloseReason.CONNECTION_BROKEN)

    def _arrived(self, request: Any, future: Any, sent_s: float) -> None:
        self._queue.append((request, future, sent_s))
        self._serve()

    def _serve(self) -> None:
        if self._is_busy or self.is_dropped or not self._queue:
            return
        self._is_busy = True
        request, future, sent_s = self._queue.popleft()

        def reply(answer: Any) -> None:
            if not self.is_dropped:
                self._is_busy = False
                arguments = (self._answered, request, answer, future, sent_s)
                self._back_s = self.network.carry(self, request, self._back_s, self.process.deliver, *arguments)
                self._serve()

        self.network.serve(self.node, self.process, request, reply)

    def _answered(self, request: Any, answer: Any, future: Any, sent_s: float) -> None:
        self._requests.remove((future,))
        self._last_action = self.network.world.now_s
        if not future.done():
            future.set_result(answer)
            self.network.answered(self.process, request, answer, sent_s)
