"""The three connections of a replica, with the settings that make a handover quick: events in, records out, plans.

A replica that leaves waits for Kafka to its deadline while any broker answers, else hardly at all.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from contracts.connection import Connection
from contracts.delivery import Delivery, Guarantee
from contracts.topics import AUTO_OFFSET_RESET
from services.common.header_names import read_any_header_name
from services.consumer.assignor import PlanAssignor
from services.consumer.connections import RecallingClient
from services.consumer.coordinator import PlanCoordinator
from services.consumer.interface import Options, ReplicaError, Topics
from services.consumer.output import Output
from services.consumer.plan_reader import PlanReader
from services.consumer.poller import WAIT_MS
from services.consumer.topic_facts import RecordSizes
from services.consumer.transaction import Transactions

log = logging.getLogger(__name__)

T = TypeVar("T")

LEAST_ANSWER_S: Final = 1.0
ANSWERS: Final = 4
"""In a session. One that is not answered for so long is given up, and asked of another broker: a host that vanished
costs a request, a new connection and a look at the metadata, one after the other, and a session is enough for them."""
START_DEADLINE_S: Final = 30.0
"""A broker that is being restarted is back within it; one that is not there is reported after it."""
RETRY_S: Final = 0.2
RETRY_BACKOFF_MS: Final = 20
"""aiokafka sleeps this long after each failed join, sync or produce; its default, 100, would be felt in a rebalance."""
PARTITION_FETCH_BYTES: Final = 64 * 1024
POLL_INTERVAL_MS: Final = 24 * 3600 * 1000
"""Slow service may keep every partition paused; heartbeats tell whether the replica lives."""
CLOSE_DEADLINE_S: Final = 2.0
FORLORN_S: Final = 0.2  # the same where no broker answers, and nothing is to be waited for


class Clients:
    """Made inside a running event loop, started once, closed once."""

    def __init__(
        self, replica: str, incarnation: str, connection: Connection, topics: Topics, options: Options
    ) -> None:
        read_any_header_name()
        self._where = connection.bootstrap_servers
        self._topics = topics
        self._options = options
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets the first error that the replica cannot survive."""
        answer_s = max(LEAST_ANSWER_S, options.session_s / ANSWERS)
        shared = connection.aiokafka() | {
            "client_id": replica,
            "retry_backoff_ms": RETRY_BACKOFF_MS,
            "request_timeout_ms": int(1000 * answer_s),
        }
        self.plans = PlanReader(shared, topics.plans)
        self.output = Output(shared, self.failed)
        self.transactions = (
            Transactions(shared, topics.group, replica, incarnation, timeout_s=options.session_s)
            if options.guarantee is Guarantee.EXACTLY_ONCE
            else None
        )
        self.assignor = PlanAssignor(
            replica, incarnation, lambda: self.plans.newest, eager=options.delivery is Delivery.EAGER
        )
        self.assignor.learn = self.plans.learn
        self.consumer = self._new_consumer(shared)
        self.sizes = RecordSizes(self.consumer._client, self._limit_batches)
        self.coordinator: PlanCoordinator
        """Known once started."""

    def _new_consumer(self, shared: dict[str, Any]) -> Any:
        options = self._options
        consumer = AIOKafkaConsumer(
            **shared,
            group_id=self._topics.group,
            partition_assignment_strategy=[self.assignor],
            auto_offset_reset=AUTO_OFFSET_RESET,
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=int(options.session_s * 1000),
            heartbeat_interval_ms=int(options.heartbeat_s * 1000),
            rebalance_timeout_ms=int(options.rebalance_timeout_s * 1000),
            max_poll_interval_ms=POLL_INTERVAL_MS,
            fetch_max_wait_ms=WAIT_MS,
            max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        )
        RecallingClient.adopt(consumer._client)
        consumer._client.set_topics([self._topics.events])  # without any it would be told of all topics there are
        return consumer

    async def start(self) -> None:
        """Connect, find every topic and the group's coordinator, read the plans. Raises ReplicaError after 30 s."""
        deadline = time.monotonic() + START_DEADLINE_S
        where = self._where
        unreachable = f"no Kafka at {where} within {START_DEADLINE_S:.0f} s; start it or set TAILPACK_BOOTSTRAP_SERVERS"
        starts = [self.consumer.start, self.output.start, self.plans.connect]
        if self.transactions:
            starts.append(self.transactions.start)
        await together(*(patiently(start, unreachable, deadline=deadline) for start in starts))
        await self._check_topics(deadline)
        self.coordinator = PlanCoordinator.adopt(self.consumer, self._topics.events)
        self.assignor.group_generation = lambda: int(self.coordinator.generation)
        self.assignor.partitions_wanted = self.coordinator.look_for_partitions
        await together(
            patiently(self.plans.read_to_end, f"the plan topic on {where} cannot be read", deadline=deadline),
            patiently(self.coordinator.ensure_coordinator_known, f"no group coordinator on {where}", deadline=deadline),
            self.sizes.learn(filter(None, (self._topics.dead_letters, *self._topics.others))),
        )

    def _limit_batches(self, largest: int) -> None:
        self.output.limit_batches(largest)
        if self.transactions:
            self.transactions.limit_batches(largest)

    async def _check_topics(self, deadline: float) -> None:
        topics = self._topics
        own = filter(None, (topics.events, topics.progress, topics.plans, topics.dead_letters))
        for name, least in (dict.fromkeys(own, 1) | dict(topics.others)).items():
            missing = f"topic {name} is not on {self._where}; create the run's topics first"
            count = await patiently(partial(self._partitions_of, name), missing, deadline=deadline)
            if count < least:
                raise ReplicaError(f"topic {name} has {count} partitions, the settings say {least}; let them agree")

    async def _partitions_of(self, topic: str) -> int:
        """Return how many partitions `topic` has. What may be large is known to one client, the one that needs it."""
        if topic == self._topics.events:
            return len(await self.consumer._client._wait_on_metadata(topic))
        return await self.output.partitions_of(topic)

    async def close(self, deadline_s: float = CLOSE_DEADLINE_S) -> None:
        """Disconnect; the group is left first where that has not happened."""
        self.failed.cancel()
        clients = filter(None, (self.consumer, self.plans, self.output, self.transactions))
        stops = (asyncio.wait_for(client.stop(), deadline_s) for client in clients)
        # Collected, not raised: aiokafka lets its own CancelledError out when the broker is away.
        for outcome in await asyncio.gather(*stops, return_exceptions=True):
            if outcome is not None and deadline_s > FORLORN_S:
                log.warning("a connection was cut off rather than closed: %r", outcome)


async def together(*attempts: Coroutine[Any, Any, Any]) -> None:
    """Await all; the first error cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for attempt in attempts:
                group.create_task(attempt)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def patiently(attempt: Callable[[], Awaitable[T]], what: str, *, deadline: float) -> T:
    """Return the first result of `attempt` that is not an error, trying again until `deadline` (monotonic seconds).

    Raises ReplicaError with `what` and the last reason.
    """
    while True:
        left_s = deadline - time.monotonic()
        try:
            return await asyncio.wait_for(attempt(), max(left_s, RETRY_S))
        except (KafkaError, OSError, TimeoutError) as failed:
            if left_s <= RETRY_S:
                raise ReplicaError(f"{what} ({str(failed) or 'no answer'})") from failed
        await asyncio.sleep(RETRY_S)  # nothing tells when a broker starts to listen


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
