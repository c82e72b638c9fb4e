"""The three connections of a replica, with the settings that make a handover quick: events in, output, plans."""

import asyncio
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aiokafka import AIOKafkaConsumer

from contracts.connection import Connection
from contracts.topics import AUTO_OFFSET_RESET, Group, Topic, qualified
from services.consumer.assignor import PlanAssignor
from services.consumer.connection import START_DEADLINE_S, aiokafka_arguments, patiently, together
from services.consumer.coordinator import PlanCoordinator
from services.consumer.errors import ReplicaError
from services.consumer.event import Handler
from services.consumer.output import Output
from services.consumer.plan_reader import PlanReader
from services.consumer.settings import ReplicaSettings

log = logging.getLogger(__name__)

REBALANCE_TIMEOUT_MS: Final = 10_000
FETCH_WAIT_MS: Final = 50
"""A fetch under way at a handover occupies the connection this long: a latency of the partition's new owner."""
FETCHER_IDLE_MS: Final = 20
"""aiokafka's fetcher can miss an assignment and sleep this long; its default is 200."""
PARTITION_FETCH_BYTES: Final = 64 * 1024
POLL_INTERVAL_MS: Final = 24 * 3600 * 1000
"""Polls pause while the inbox is full, and slow service may keep it full; heartbeats tell whether the replica lives."""
CLOSE_DEADLINE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Work:
    """What the group does. Names without the run's namespace."""

    group: Group
    input_topic: Topic
    output_topics: tuple[Topic, ...]
    handler: Handler


class Clients:
    """Made inside a running event loop, started once, closed once."""

    def __init__(self, settings: ReplicaSettings, connection: Connection, work: Work, incarnation: str) -> None:
        self._settings = settings
        self._connection = connection
        self._work = work
        self.input_topic = qualified(connection.namespace, work.input_topic)
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets the first error that the replica cannot survive."""
        shared = aiokafka_arguments(connection) | {"client_id": settings.replica}
        self.plans = PlanReader(shared, qualified(connection.namespace, Topic.PLANS))
        self.output = Output(shared, self.failed)
        self.assignor = PlanAssignor(settings.replica, incarnation, lambda: self.plans.newest)
        self.consumer = self._new_consumer(shared)
        self.coordinator: PlanCoordinator
        """Known once started."""

    def _new_consumer(self, shared: dict[str, Any]) -> Any:
        return AIOKafkaConsumer(
            **shared,
            group_id=qualified(self._connection.namespace, self._work.group),
            partition_assignment_strategy=[self.assignor],
            auto_offset_reset=AUTO_OFFSET_RESET,
            enable_auto_commit=False,
            session_timeout_ms=int(self._settings.session_s * 1000),
            heartbeat_interval_ms=int(self._settings.heartbeat_s * 1000),
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            max_poll_interval_ms=POLL_INTERVAL_MS,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            consumer_timeout_ms=FETCHER_IDLE_MS,
            max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        )

    async def start(self) -> None:
        """Connect, find every topic and the group's coordinator, read the plans. Raises ReplicaError after 30 s."""
        deadline = time.monotonic() + START_DEADLINE_S
        where = self._connection.bootstrap_servers
        unreachable = f"no Kafka at {where} within {START_DEADLINE_S:.0f} s; start it or set TAILPACK_BOOTSTRAP_SERVERS"
        starts = (self.consumer.start, self.output.start, self.plans.connect)
        await together(*(patiently(start, unreachable, deadline=deadline) for start in starts))
        await self._check_topics(deadline)
        self.coordinator = PlanCoordinator.adopt(self.consumer)
        await together(
            patiently(self.plans.read_to_end, f"the plan topic on {where} cannot be read", deadline=deadline),
            patiently(self.coordinator.ensure_coordinator_known, f"no group coordinator on {where}", deadline=deadline),
        )

    async def _check_topics(self, deadline: float) -> None:
        for topic in (self._work.input_topic, *self._work.output_topics, Topic.PROGRESS, Topic.PLANS):
            name = qualified(self._connection.namespace, topic)
            missing = f"topic {name} is not on {self._connection.bootstrap_servers}; create the run's topics first"
            count = await patiently(partial(self.output.partitions_of, name), missing, deadline=deadline)
            expected = self._settings.payment_partitions
            if topic is self._work.input_topic and expected not in {0, count}:
                raise ReplicaError(
                    f"topic {name} has {count} partitions, TAILPACK_PAYMENT_PARTITIONS says {expected}; let them agree"
                )

    async def close(self) -> None:
        """Disconnect; the group is left first where that has not happened."""
        self.failed.cancel()
        clients = (self.consumer, self.plans, self.output)
        stops = (asyncio.wait_for(client.stop(), CLOSE_DEADLINE_S) for client in clients)
        # Collected, not raised: aiokafka lets its own CancelledError out when the broker is away.
        for outcome in await asyncio.gather(*stops, return_exceptions=True):
            if outcome is not None:
                log.warning("a connection was cut off rather than closed: %r", outcome)
