"""PlanConsumer: a Kafka consumer whose partitions follow a plan and move without interrupting the others."""

import asyncio
import logging
import secrets
import signal
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiokafka.errors import KafkaError
from prometheus_client import Metric

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.fields import NAME, NAME_RULE
from contracts.rebalance_protocol import Guarantee, RebalanceProtocol
from services.consumer.clients import SILENCE_S, Clients, run_unless, wait_for_silence
from services.consumer.handover import Handover
from services.consumer.interface import (
    BatchHandler,
    Event,
    Handler,
    Health,
    ListenerCalls,
    Listeners,
    OnError,
    Options,
    ReplicaError,
    Topics,
)
from services.consumer.lease import Lease, Prober
from services.consumer.log_watch import LogWatch
from services.consumer.membership import Membership
from services.consumer.metrics import LATENCY, Buckets
from services.consumer.outbox import Outbox
from services.consumer.output import Committer
from services.consumer.partition_queue import PartitionQueues
from services.consumer.poller import Poller
from services.consumer.server import Server, describe_error, encode_dead_letter
from services.consumer.transaction import AtomicCommitter
from services.consumer.vitals import Pages, Vitals

log = logging.getLogger(__name__)

CANCEL_TIMEOUT_S: Final = 1.0  # for tasks that are cancelled at the end
LEAVE_DEADLINE_S: Final = 4.0
"""Time limit for leaving after the drain, seconds. A stop never waits for Kafka to return."""


class PlanConsumer:
    """One replica of a group: it connects, serves its partitions under the plan, and leaves in order.

    docs/reference/consumer-api.md explains handlers, failed events and listeners.

    replica: its name in plans. If two live processes share a name, the one that joined later owns the partitions.
    handle, or handle_batch: if it returns an awaitable (the future of `send`), the event is done once the awaitable is.
    on_error: gets an event that has failed for good and its last exception. Cannot be combined with dead letters.
    busy_s: returns the total seconds of work, if the handler measures it itself. None: the time spent in the handler.
    latencies: observes the latency of each event, if the handler reports it. None: measured from the event's timestamp.
    """

    def __init__(
        self,
        replica: str,
        connection: Connection,
        topics: Topics,
        handle: Handler | None = None,
        *,
        handle_batch: BatchHandler | None = None,
        options: Options | None = None,
        listeners: Listeners | None = None,
        on_error: OnError | None = None,
        busy_s: Callable[[], float] | None = None,
        latencies: Buckets | None = None,
    ) -> None:
        if not NAME.fullmatch(replica):
            raise ValueError(f"replica {replica!r} {NAME_RULE}")
        if (handle is None) == (handle_batch is None):
            raise ValueError("give either handle or handle_batch")
        self._replica, self._connection, self._topics = replica, connection, topics
        self._options = options or Options()
        if handle is not None and self._options.batch_size != 1:
            raise ValueError(f"batch_size {self._options.batch_size} is for handle_batch; handle gets one event")
        self._handle: BatchHandler = handle_batch or (lambda events: handle(events[0]))  # type: ignore[misc]
        self._listeners = listeners or Listeners()
        if on_error is not None and topics.dead_letters:
            raise ValueError("give either on_error or a topic of dead letters")
        self._on_error = self._write_dead_letter if topics.dead_letters else on_error
        self._queues = PartitionQueues(
            per_partition=self._options.concurrency_per_partition, batch_size=self._options.batch_size
        )
        self._outbox = Outbox(self._queues.early_commit) if self._options.guarantee is Guarantee.EXACTLY_ONCE else None
        if self._outbox:
            self._handle = self._outbox.wrap_handler(self._handle)
            self._on_error = self._outbox.wrap_on_error(self._on_error) if self._on_error else None
        self._busy_s = busy_s
        self._latencies = latencies or Buckets(LATENCY, self._options.latency_target_s)
        self._handler_reports_latencies = latencies is not None
        self._has_broker = True
        self._vitals: Vitals | None = None
        self._incarnation = f"{now_us():016d}-{secrets.token_hex(4)}"

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Serve until `stop` is set or, without it, until SIGTERM or SIGINT. Raises ReplicaError.

        After `stop` it serves until other replicas have taken over, commits, and leaves the group.
        """
        if stop is None:
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        self._clients = Clients(self._replica, self._incarnation, self._connection, self._topics, self._options)
        try:
            with _quiet_aiokafka():
                is_started = await run_unless(self._clients.start(), stop.wait())
            if is_started:
                self._build_parts()
                await self._serve(stop)
        except KafkaError as error:
            raise ReplicaError(f"{self._replica} cannot continue: {error!r}") from error
        finally:
            with _quiet_aiokafka():
                await self._clients.close(has_broker=self._has_broker)

    async def send(self, topic: str, key: bytes | None, value: bytes) -> "asyncio.Future[None]":
        """Write a record with the replica's producer. The future is done once all in-sync copies have it.

        With exactly_once only handlers may call it: the future is done at once, and the record is committed with its
        event. Raises MessageSizeTooLargeError if the topic does not accept the size.
        """
        await self._clients.sizes.check(topic, key, value)
        return await (self._outbox or self._clients.output).send(topic, key, value)

    def pause(self, partition: int) -> None:
        """Start no event of a partition until `resume`, or until it moves. Raises KeyError if it is not assigned."""
        self._queues.pause(partition)

    def resume(self, partition: int) -> None:
        """Undo `pause`. Raises KeyError if the partition is not assigned."""
        self._queues.resume(partition)

    @property
    def partitions(self) -> tuple[int, ...]:
        """Partitions that this replica serves now, ascending."""
        return self._queues.served_partitions

    async def _write_dead_letter(self, event: Event, error: Exception) -> None:
        topics = self._topics
        try:
            max_bytes = await self._clients.sizes.max_bytes(topics.dead_letters)
            key, value = encode_dead_letter(topics.stage or topics.group, event, error, now_us(), max_bytes)
            await (await self.send(topics.dead_letters, key, value))
        except Exception as write_error:
            what = f"the dead letter of {event.topic}, partition {event.partition}, offset {event.offset}"
            why = f"cannot be written to {topics.dead_letters} ({describe_error(write_error)})"
            raise ReplicaError(f"{what} {why}; the event failed with {describe_error(error)}") from write_error

    def health(self) -> Health:
        """Return whether the replica is healthy, and if not, why. Raises RuntimeError if it is not running yet."""
        if self._vitals is None:
            raise RuntimeError(f"{self._replica} is not running yet")
        return self._vitals.health()

    def collect(self) -> Iterable[Metric]:
        """Return the metrics, for `registry.register(consumer)` of prometheus-client; empty before it runs."""
        return self._vitals.collect() if self._vitals else ()

    def _build_parts(self) -> None:
        clients, options, queues = self._clients, self._options, self._queues
        self._lease = Lease(options.session_s, options.rebalance_timeout_s)
        latencies = None if self._handler_reports_latencies else self._latencies
        self._server = Server(
            queues, self._lease, self._handle, self._on_error, options, latencies=latencies, group=self._topics.group
        )
        max_age_s = options.commit_interval_s + max(options.session_s, options.rebalance_timeout_s)
        arguments = (clients.coordinator, queues, self._topics.events, options.commit_interval_s, max_age_s)
        self._committer = Committer(*arguments)
        if self._outbox and clients.transactions:
            self._committer = AtomicCommitter(*arguments, outbox=self._outbox, transactions=clients.transactions)
        self._handover = Handover(
            coordinator=clients.coordinator,
            assignor=clients.assignor,
            queues=queues,
            committer=self._committer,
            calls=ListenerCalls(self._listeners),
            is_eager=options.rebalance_protocol is RebalanceProtocol.EAGER,
            max_release_s=min(1.0, options.session_s / 3, options.rebalance_timeout_s / 3),
        )
        self._prober = Prober(clients.coordinator.probe, self._lease, clients.slowdown)
        self._membership = Membership(
            replica=self._replica,
            subscribe=lambda: clients.consumer.subscribe([self._topics.events]),
            coordinator=clients.coordinator,
            assignor=clients.assignor,
            handover=self._handover,
            plans=clients.plans,
            on_change=clients.progress.report_requested.set,
            on_rebalance=self._prober.rebalance_completed.set,
            failure=clients.failure,
            end_transaction=clients.transactions.end_transaction if clients.transactions else None,
        )
        self._log_watch = LogWatch(clients.consumer, queues, self._topics.events, options.on_log_reset)
        clients.coordinator.on_out_of_range = self._log_watch.on_out_of_range
        clients.coordinator.is_foreign = self._log_watch.is_foreign
        self._committer.metadata = self._log_watch.metadata
        self._vitals = Vitals(
            replica=self._replica,
            incarnation=self._incarnation,
            topics=self._topics,
            options=options,
            clients=clients,
            queues=queues,
            server=self._server,
            lease=self._lease,
            committer=self._committer,
            handover=self._handover,
            membership=self._membership,
            busy_s=self._busy_s or (lambda: self._server.busy_s),
            latencies=self._latencies,
        )
        clients.consumer._fetcher.events_of = queues.events_of
        clients.progress.snapshot = self._vitals.progress
        clients.assignor.owned_partitions = lambda: queues.owned_partitions
        clients.coordinator.callbacks, clients.coordinator.lease = self._membership, self._lease

    async def _serve(self, stop: asyncio.Event) -> None:
        assert self._vitals is not None
        pages = Pages(self._options.http_host, self._options.http_port, self._vitals)
        self._vitals.pages = pages.start(self._connection.bootstrap_servers)
        await self._log_watch.check_topic_id()
        jobs: list[Coroutine[Any, Any, Any]] = [
            stop.wait(),
            Poller(self._clients.consumer, self._queues, self._topics.events).run(),
            *(self._server.run() for _ in range(self._options.concurrency)),
            self._server.watch(),
            self._committer.run(),
            self._log_watch.run(),
            self._clients.plans.follow(),
            self._clients.progress.run(),
            self._membership.run(),
            self._prober.run(),
            self._lease.watch(),
            self._clients.output.watch(),
        ]
        tasks = [asyncio.ensure_future(job) for job in jobs]
        try:
            await self._wait_for_first([*tasks, self._clients.failure])
            tasks[0] = asyncio.ensure_future(self._shut_down())
            await self._wait_for_first([*tasks, self._clients.failure])
        finally:
            for task in tasks:
                task.cancel()
            ended, running = await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT_S)
            for task in ended:
                task.cancelled() or task.exception()  # retrieved: the first error was raised above
            if running:
                log.warning("Stopping although %d tasks, such as handlers, ignore their cancellation", len(running))
            await pages.stop()

    async def _wait_for_first(self, tasks: "list[asyncio.Future[Any]]") -> None:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def _shut_down(self) -> None:
        silence = wait_for_silence(self._clients.coordinator.brokers, self._clients.coordinator.ping)
        try:
            if await run_unless(self._leave(), silence, self._options.drain_s + LEAVE_DEADLINE_S):
                return
        except TimeoutError:
            log.warning("Left without an answer from Kafka; events that are not committed will be served again")
            return
        await self._membership.abandon()
        log.warning("No broker answered for %g s: events since the last commit will be served again", SILENCE_S)
        self._has_broker = False

    async def _leave(self) -> None:
        await self._membership.drain(self._options.drain_s)
        await self._clients.output.all_acknowledged.wait()
        await self._clients.progress.report()


@contextmanager
def _quiet_aiokafka() -> Iterator[None]:
    log = logging.getLogger("aiokafka")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
