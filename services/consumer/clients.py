"""The Kafka clients of a replica (events, outputs, plans, progress), with settings for a quick handover.

A replica that leaves waits for Kafka until its deadline, but gives up after SILENCE_S if no broker answers.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from contracts.connection import Connection
from contracts.rebalance_protocol import Guarantee, RebalanceProtocol
from contracts.topics import AUTO_OFFSET_RESET
from contracts.unpacking import MAX_POLL_BYTES, MAX_POLL_RECORDS, limit_unpacking
from services.consumer.assignor import PlanAssignor
from services.consumer.connections import RecallingClient
from services.consumer.coordinator import PlanCoordinator
from services.consumer.fetching import BatchFetcher
from services.consumer.interface import Options, ReplicaError, Topics
from services.consumer.output import Output, ProgressReporter, limit_batches
from services.consumer.plan_reader import PlanReader
from services.consumer.topic_facts import RecordSizes
from services.consumer.transaction import Transactions

log = logging.getLogger(__name__)

T = TypeVar("T")

MIN_REQUEST_TIMEOUT_S: Final = 1.0
REQUEST_TIMEOUTS_PER_SESSION: Final = 4
"""A request without an answer for a quarter of the session is sent to another broker. A host that vanished costs a
request, a connection attempt and a metadata request, one after the other, and these must fit into a session."""
START_DEADLINE_S: Final = 30.0
"""Longest wait for brokers and topics at the start, seconds. A broker restarts in less time."""
RETRY_INTERVAL_S: Final = 0.2
RETRY_BACKOFF_MS: Final = 20
"""Pause of aiokafka after each failed join, sync or produce. Its default, 100, would prolong rebalances."""
PARTITION_FETCH_BYTES: Final = 64 * 1024
POLL_INTERVAL_MS: Final = 24 * 3600 * 1000
"""Longest time between polls: a day, because slow events may pause all partitions. Heartbeats prove liveness."""
FULL_RATE_MEMBERS: Final = 100  # in larger groups, each member reports and probes less often
MAX_SLOWDOWN: Final = 2.0
CLOSE_DEADLINE_S: Final = 2.0
CLOSE_WITHOUT_BROKER_S: Final = 0.2  # replaces CLOSE_DEADLINE_S if no broker answers


class Clients:
    """The Kafka clients of one replica. Create them inside a running event loop, and start and close them once."""

    def __init__(
        self, replica: str, incarnation: str, connection: Connection, topics: Topics, options: Options
    ) -> None:
        limit_unpacking(options.max_batch_mb)
        self._bootstrap_servers = connection.bootstrap_servers
        self._topics, self._options = topics, options
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets the first error that ends the replica."""
        request_timeout_s = max(MIN_REQUEST_TIMEOUT_S, options.session_s / REQUEST_TIMEOUTS_PER_SESSION)
        shared = connection.aiokafka() | {
            "client_id": replica,
            "retry_backoff_ms": RETRY_BACKOFF_MS,
            "request_timeout_ms": int(1000 * request_timeout_s),
        }
        self.plans = PlanReader(shared, topics.plans, topics.group)
        self.output = Output(shared, self.failure)
        self.progress = ProgressReporter(shared, topics.progress, self.slowdown)
        self._producers = (self.output.producer, self.progress.producer)
        self.transactions = (
            Transactions(shared, topics.group, replica, incarnation, timeout_s=options.session_s)
            if options.guarantee is Guarantee.EXACTLY_ONCE
            else None
        )
        eager = options.rebalance_protocol is RebalanceProtocol.EAGER
        self.assignor = PlanAssignor(replica, incarnation, lambda: self.plans.newest_plan, is_eager=eager)
        self.consumer = self._new_consumer(shared)
        self.sizes = RecordSizes(self.consumer._client, self._limit_batches)
        self.coordinator: PlanCoordinator
        """Set by `start`."""

    def slowdown(self) -> float:
        """Return how many times longer this member waits between reports, and between probes, than in a small group."""
        return min(MAX_SLOWDOWN, max(1.0, self.assignor.last_assignment.members / FULL_RATE_MEMBERS))

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
            max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
            fetch_max_bytes=MAX_POLL_BYTES,
            max_poll_records=MAX_POLL_RECORDS,
        )
        RecallingClient.adopt(consumer._client)
        consumer._client.set_topics([self._topics.events])  # without this it would get the metadata of all topics
        return consumer

    async def start(self) -> None:
        """Connect, find all topics and the coordinator, and read the plans. Raises ReplicaError after 30 s."""
        deadline = time.monotonic() + START_DEADLINE_S
        where = self._bootstrap_servers
        unreachable = f"no Kafka at {where} within {START_DEADLINE_S:.0f} s; start it or set TAILPACK_BOOTSTRAP_SERVERS"
        starts = [self.plans.connect, *(client.start for client in (self.consumer, *self._producers))]
        if self.transactions:
            starts.append(self.transactions.start)
        await run_all(*(retry_until(start, unreachable, deadline=deadline) for start in starts))
        await self._check_topics(deadline)
        BatchFetcher.adopt(self.consumer)
        self.consumer._client.open_fetch_connections(self._topics.events)
        self.coordinator = PlanCoordinator.adopt(self.consumer, self._topics.events)
        self.assignor.group_generation = lambda: int(self.coordinator.generation)
        self.assignor.on_unknown_partitions = self.consumer._client.force_metadata_update
        await run_all(
            retry_until(self.plans.read_to_end, f"the plan topic on {where} cannot be read", deadline=deadline),
            retry_until(self.coordinator.ensure_coordinator_known, f"no coordinator on {where}", deadline=deadline),
            self.sizes.query_limits(filter(None, (self._topics.dead_letters, *self._topics.others))),
        )

    def _limit_batches(self, max_bytes: int) -> None:
        limit_batches(self.output.producer, max_bytes)
        if self.transactions:
            self.transactions.limit_batches(max_bytes)

    async def _check_topics(self, deadline: float) -> None:
        topics = self._topics
        own = filter(None, (topics.events, topics.plans, topics.dead_letters))
        for name, minimum in (dict.fromkeys(own, 1) | dict(topics.others)).items():
            missing = f"topic {name} was not found on {self._bootstrap_servers} in time; create the run's topics first"
            count = await retry_until(partial(self._partitions_of, name), missing, deadline=deadline)
            if count < minimum:
                raise ReplicaError(f"topic {name} has {count} partitions; add some, or require fewer than {minimum}")

    async def _partitions_of(self, topic: str) -> int:
        if topic == self._topics.events:  # its metadata may be large: only the consumer, which needs it, requests it
            return len(await self.consumer._client._wait_on_metadata(topic))
        return len(await self.output.producer.partitions_for(topic))

    async def close(self, *, has_broker: bool) -> None:
        """Disconnect, quickly if no broker answers. The consumer leaves the group first, if it is still a member."""
        deadline_s = CLOSE_DEADLINE_S if has_broker else CLOSE_WITHOUT_BROKER_S
        self.failure.cancel()
        clients = filter(None, (self.consumer, self.plans, *self._producers, self.transactions))
        stops = (_stop(client, deadline_s) for client in clients)
        # Errors are collected, because aiokafka raises its own CancelledError if the broker is away.
        for error in await asyncio.gather(*stops, return_exceptions=True):
            if error is not None and has_broker:
                log.warning("A Kafka client did not close cleanly: %r", error)


async def _stop(client: Any, deadline_s: float) -> None:
    async with asyncio.timeout(deadline_s):
        await client.stop()


async def run_all(*attempts: Coroutine[Any, Any, Any]) -> None:
    """Await all attempts. The first error cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for attempt in attempts:
                group.create_task(attempt)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def retry_until(attempt: Callable[[], Awaitable[T]], message: str, *, deadline: float) -> T:
    """Return the first result of `attempt`. Retry it after errors until `deadline` (monotonic seconds).

    Raises ReplicaError with `message` and the last error.
    """
    while True:
        left_s = deadline - time.monotonic()
        try:
            async with asyncio.timeout(max(left_s, RETRY_INTERVAL_S)):
                return await attempt()
        except (KafkaError, OSError, TimeoutError) as error:
            if left_s <= RETRY_INTERVAL_S:
                raise ReplicaError(f"{message} ({str(error) or 'no answer'})") from error
        await asyncio.sleep(RETRY_INTERVAL_S)  # a broker that starts sends no event


CHECK_INTERVAL_S: Final = 0.2
"""Pause between two checks whether any broker has answered. A handover is usually over before the first check."""
MAX_SILENT_CHECKS: Final = 6
"""Consecutive checks without an answer after which the replica gives up, because it can neither commit nor hand over. A
time limit would be wrong, because a process that was frozen would exceed it at its first check."""
SILENCE_S: Final = CHECK_INTERVAL_S * MAX_SILENT_CHECKS


async def wait_for_silence(
    nodes: Callable[[], Iterable[int]], ping: Callable[[int], Awaitable[object]], *, pause_s: float = CHECK_INTERVAL_S
) -> None:
    """Return once none of the brokers `nodes` has answered in MAX_SILENT_CHECKS checks in a row, `pause_s` apart.

    All brokers are pinged concurrently, so that a broker that hangs does not delay the answer of another. `ping` raises
    KafkaError if a broker cannot be reached.
    """
    pings: dict[int, asyncio.Future[None]] = {}
    has_answer = asyncio.Event()

    async def receive(node: int) -> None:
        try:
            await ping(node)
            has_answer.set()
        except KafkaError:
            pass  # the next check pings again

    await asyncio.sleep(pause_s)
    silent_checks = 0
    try:
        while silent_checks < MAX_SILENT_CHECKS:
            pings |= {
                node: asyncio.ensure_future(receive(node))
                for node in nodes()
                if node not in pings or pings[node].done()
            }
            await asyncio.sleep(pause_s)
            silent_checks = 0 if has_answer.is_set() else silent_checks + 1
            has_answer.clear()
    finally:
        await _cancel(*pings.values())


async def run_unless(
    work: Coroutine[Any, Any, Any], signal: Coroutine[Any, Any, Any], deadline_s: float | None = None
) -> bool:
    """Run `work` until it or `signal` is done. Return whether `work` was first. Raises TimeoutError at the deadline."""
    worker, waiter = asyncio.ensure_future(work), asyncio.ensure_future(signal)
    try:
        done, _ = await asyncio.wait([worker, waiter], timeout=deadline_s, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise TimeoutError
        first = worker if worker in done else waiter
        first.result()
        return first is worker
    finally:
        await _cancel(worker, waiter)


async def _cancel(*futures: "asyncio.Future[Any]") -> None:
    for future in futures:
        future.cancel()
    await asyncio.gather(*futures, return_exceptions=True)
