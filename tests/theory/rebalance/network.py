"""Simulated connections for aiokafka: requests and answers take time, wait, and get lost."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaConnectionError
from aiokafka.util import wait_for
from theory.rebalance.processes import Call, Process, Simulation

VERSIONS: Final = {0: 3, 1: 4, 2: 2, 3: 1, 8: 2, 9: 7, 10: 1, 11: 5, 12: 0, 13: 0, 14: 0, 15: 0, 22: 0}
"""API key → version that the simulated brokers support."""
GROUP_KEYS: Final = (8, 11, 12, 13, 14)
"""OffsetCommit, JoinGroup, Heartbeat, LeaveGroup, SyncGroup."""
LATENCY_S: Final = (0.0002, 0.004)
FOREVER: Final = float("inf")

Reply = Callable[[Any], None]
Serve = Callable[[int, Process, Any, Reply], None]


class Network:
    """Connects processes with brokers. nodes: node → whether it is up. serve: handles a request at a broker."""

    def __init__(self, sim: Simulation, nodes: dict[int, bool], serve: Serve) -> None:
        self.sim = sim
        self.nodes = nodes
        self.serve = serve
        self.connections: list[Connection] = []
        self._cuts: dict[tuple[str, int], float] = {}
        self.message_delay_s: Callable[[Process], float] = lambda process: 0.0
        """Returns the extra delay (s) of each message of the group protocol, in both directions."""
        self.on_answer: Callable[[Process, Any, Any, float], None] = lambda process, request, answer, sent_s: None
        """Called with each answer when a process reads it."""

    async def connect(self, host: str, port: int, **options: Any) -> "Connection":
        """Stand in for `aiokafka.client.create_conn`."""
        process = asyncio.get_running_loop()
        await asyncio.sleep(self._latency_s(f"{process.name} {port}"))
        while (heals_s := self.cut_until_s(process, port)) > self.sim.now_s:
            if heals_s - self.sim.now_s > options["request_timeout_ms"] / 1000:
                await asyncio.sleep(options["request_timeout_ms"] / 1000)
                raise TimeoutError
            await asyncio.sleep(heals_s - self.sim.now_s)
        if not self.nodes[port] or process.is_dead:
            raise ConnectionRefusedError(f"node {port} is down")
        connection = Connection(self, process, port, options["request_timeout_ms"] / 1000, options.get("on_close"))
        self.connections.append(connection)
        return connection

    def cut(self, process: Process | None, node: int | None, until_s: float) -> None:
        """Hold all messages between a process and a node (None: all) until `until_s`."""
        for one in [process.name] if process else [each.name for each in self.sim.processes]:
            for other in self.nodes if node is None else [node]:
                self._cuts[one, other] = until_s

    def cut_until_s(self, process: Process, node: int) -> float:
        """Return the time until which messages between the two are held."""
        return self._cuts.get((process.name, node), 0.0)

    def reset(self, process: Process | None, node: int | None) -> None:
        """Close the connections between a process and a node (None: all)."""
        for each in [*self.connections]:
            if process in (None, each.process) and node in (None, each.node):
                each.drop()

    def carry(self, connection: "Connection", request: Any, after_s: float, call: Call, *arguments: object) -> float:
        """Schedule `call` at the connection's other side, in order; return its time."""
        late_s = self.message_delay_s(connection.process) if request.API_KEY in GROUP_KEYS else 0.0
        when_s = max(
            after_s,
            self.sim.now_s + self._latency_s(f"{connection.process.name} {connection.node} {request.API_KEY}") + late_s,
        )
        self.sim.at(when_s, self._arrive, connection, call, arguments)
        return when_s

    def _arrive(self, connection: "Connection", call: Call, arguments: tuple[object, ...]) -> None:
        heals_s = self.cut_until_s(connection.process, connection.node)
        if heals_s > self.sim.now_s:
            if heals_s < FOREVER:
                self.sim.at(heals_s, self._arrive, connection, call, arguments)
        elif not connection.is_dropped:
            call(*arguments)

    def _latency_s(self, way: str) -> float:
        least, most = LATENCY_S
        chance = self.sim.jitter(way)
        return least + (most - least) * chance**3 + (0.05 if chance > 0.998 else 0.0)


class Connection:
    """One connection, whose requests the broker serves in order and one at a time."""

    def __init__(self, network: Network, process: Process, node: int, timeout_s: float, on_close: Any) -> None:
        self.network = network
        self.process = process
        self.node = node
        self.is_dropped = False
        self._request_timeout = timeout_s
        self._on_close = on_close
        self._is_open = True
        self._writer = self
        self._requests: deque[tuple[Any]] = deque()
        """Pending requests with aiokafka's structure: the future is the last item."""
        self._last_action = network.sim.now_s
        self._queue: deque[tuple[Any, Any, float]] = deque()
        self._is_busy = False
        self._there_s = self._back_s = 0.0

    def connected(self) -> bool:
        """Return whether it is open at the client's side."""
        return self._is_open

    def is_closing(self) -> bool:
        """Return whether no more bytes can be written."""
        return not self._is_open

    def send(self, request: Any, expect_response: bool = True) -> Any:
        """Send a request; return an awaitable of its answer."""
        if not self._is_open:
            raise KafkaConnectionError("closed")
        future = self.process.create_future()
        self._requests.append((future,))
        prepared = request.prepare({key: (version, version) for key, version in VERSIONS.items()})
        sent_s = self.network.sim.now_s
        self._there_s = self.network.carry(self, prepared, self._there_s, self._arrived, prepared, future, sent_s)
        return wait_for(future, self._request_timeout)

    def close(self, reason: Any = None, exc: BaseException | None = None) -> Any:
        """Close the connection; pending requests fail."""
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
        """Break the connection: messages in flight are lost on both sides."""
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
        self._last_action = self.network.sim.now_s
        if not future.done():
            future.set_result(answer)
            self.network.on_answer(self.process, request, answer, sent_s)
