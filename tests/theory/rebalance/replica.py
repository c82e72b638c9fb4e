"""A replica as a simulated process, with the real PlanConsumer."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from theory.rebalance.checks import MAX_GAP_SESSIONS, Checks
from theory.rebalance.processes import Process, Simulation

from contracts.connection import Connection
from contracts.rebalance_protocol import RebalanceProtocol
from services.consumer import Event, Listeners, Options, PlanConsumer, Topics

TOPICS: Final = Topics(group="group", events="events", plans="plans", progress="progress")
SESSION_S: Final = 1.0
REBALANCE_S: Final = 1.5
DRAIN_S: Final = 1.0
LISTENER_S: Final = 0.002


class Replica(Process):
    """Serves each event of the topic in `service_s`, then writes its output."""

    def __init__(
        self,
        sim: Simulation,
        name: str,
        checks: Checks,
        nodes: int,
        protocol: RebalanceProtocol,
        *,
        topic: str = TOPICS.events,
    ) -> None:
        super().__init__(sim, name)
        self.checks = checks
        self.service_s = 0.005
        self._topics = replace(TOPICS, events=topic)
        self.consumer: PlanConsumer | None = None
        self.stood_still_s = 0.0
        """End of its last gap."""
        self.ended = ""
        """Why it ended. Empty: it runs."""
        self._where = Connection(bootstrap_servers=",".join(f"node-{node}:{node}" for node in range(1, nodes + 1)))
        self._options = Options(
            session_s=SESSION_S,
            heartbeat_s=0.3,
            rebalance_timeout_s=REBALANCE_S,
            drain_s=DRAIN_S,
            rebalance_protocol=protocol,
        )
        self.call_soon(self._begin)

    @property
    def member_id(self) -> str:
        """Its member id, from its own state."""
        membership = getattr(self.consumer, "_membership", None)
        return membership.member_id if membership else ""

    @property
    def partitions(self) -> tuple[int, ...]:
        """Partitions that it serves, from its own state."""
        return self.consumer.partitions if self.consumer else ()

    def send_sigterm(self) -> None:
        """Send SIGTERM."""
        self.deliver(self._stop.set)

    def kill(self) -> None:
        """Kill the process; its connections are closed."""
        self.is_dead, self.ended = True, self.ended or "killed"
        for each in [*self.checks.cluster.network.connections]:
            if each.process is self:
                each.is_dropped = True
                self.checks.cluster.network.connections.remove(each)

    def freeze(self, for_s: float) -> None:
        """Stop the process for some seconds."""
        self.frozen_until_s = max(self.frozen_until_s, self.sim.now_s + for_s)
        if for_s > MAX_GAP_SESSIONS * SESSION_S:
            self.stood_still_s = self.frozen_until_s

    def _begin(self) -> None:
        self._stop = asyncio.Event()
        listeners = Listeners(
            on_partitions_taken=lambda mine: self._listen("taken", mine),
            on_partitions_released=lambda mine: self._listen("released", mine),
            on_partitions_lost=lambda mine: self._listen("lost", mine),
        )
        self.consumer = PlanConsumer(
            self.name, self._where, self._topics, self._handle, options=self._options, listeners=listeners
        )
        self._task = self.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self.consumer.run(self._stop)
            self.ended = "stopped"
        except Exception as error:
            self.ended = f"{type(error).__name__}: {error}"
        self.kill()

    async def _handle(self, event: Event) -> Any:
        self.checks.on_start(self, event.partition, event.offset)
        await asyncio.sleep(self.service_s)
        value = f"{event.partition}:{event.offset}:{event.generation}:{event.epoch}".encode()
        return await self.consumer.send("output", event.key, value)

    async def _listen(self, what: str, partitions: Sequence[int]) -> None:
        self.checks.on_listener(self, what, partitions)
        await asyncio.sleep(LISTENER_S)
        self.checks.on_listener(self, "", partitions)
