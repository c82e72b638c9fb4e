"""PlanConsumer: a Kafka consumer whose share of the partitions follows a plan, and moves without a break."""

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
from contracts.delivery import Delivery, Guarantee
from contracts.progress import Progress
from services.consumer.clients import CLOSE_DEADLINE_S, FORLORN_S, SILENCE_S, Clients, served_again, silence, unless
from services.consumer.handover import Handover
from services.consumer.interface import (
    BatchHandler,
    Calls,
    Event,
    Handler,
    Health,
    Later,
    Listeners,
    OnError,
    Options,
    ReplicaError,
    Topics,
)
from services.consumer.lease import Lease, Prober
from services.consumer.log_watch import LogWatch
from services.consumer.membership import Membership
from services.consumer.metrics import Latencies
from services.consumer.outbox import Outbox
from services.consumer.output import Committer, ProgressReporter
from services.consumer.partition_queue import PartitionQueues
from services.consumer.poller import Poller
from services.consumer.server import Server, encode_dead_letter, told
from services.consumer.transaction import AtomicCommitter
from services.consumer.vitals import Pages, Vitals

log = logging.getLogger(__name__)

CANCEL_S: Final = 1.0  # how long what is cancelled at the end is waited for
LEAVE_DEADLINE_S: Final = 4.0
"""Beyond the drain. What is not committed by then is served again: a stop never waits for Kafka's return."""


class PlanConsumer:
    """One replica of a group: connects, warms up, serves under the plan, and leaves in order.

    docs/reference/consumer-api.md explains handlers, what becomes of an event that fails, and listeners.

    replica: its name in plans. Of two live processes of one name the one that joined later owns the partitions.
    handle, or handle_batch: may return an awaitable, such as the future of `send`; the event is done once that is.
    on_error: gets an event that has failed for good, and the last exception, instead of the topic of dead letters.
    busy_s: total seconds of work so far, if the handler measures it better than a clock around it.
    latencies: where the handler reports how late each event was; None: measured from the event's timestamp.
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
        latencies: Latencies | None = None,
    ) -> None:
        if not replica:
            raise ValueError("replica must not be empty")
        if (handle is None) == (handle_batch is None):
            raise ValueError("give either handle or handle_batch")
        self._replica = replica
        self._connection = connection
        self._topics = topics
        self._options = options or Options()
        if handle is not None and self._options.batch_size != 1:
            raise ValueError(f"batch_size {self._options.batch_size} is for handle_batch; handle gets one event")
        self._handle = handle_batch or _each(handle)
        self._listeners = listeners or Listeners()
        if on_error is not None and topics.dead_letters:
            raise ValueError("give either on_error or a topic of dead letters")
        self._on_error = self._bury if topics.dead_letters else on_error
        self._outbox = Outbox() if self._options.guarantee is Guarantee.EXACTLY_ONCE else None
        if self._outbox:
            self._handle = self._outbox.handler(self._handle)
            self._on_error = self._outbox.on_error(self._on_error) if self._on_error else None
        self._busy_s = busy_s
        self._latencies = latencies or Latencies(self._options)
        self._measures_itself = latencies is not None
        self._close_s = CLOSE_DEADLINE_S
        self._vitals: Vitals | None = None
        self._incarnation = f"{now_us():016d}-{secrets.token_hex(4)}"
        self._queues = PartitionQueues(
            per_partition=self._options.concurrency_per_partition, batch_size=self._options.batch_size
        )

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Serve until `stop` is set; without one, until SIGTERM or SIGINT. Raises ReplicaError: cannot start or go on.

        Then: asks the others to take over, serves until they have, commits and leaves the group.
        """
        if stop is None:
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        self._clients = Clients(self._replica, self._incarnation, self._connection, self._topics, self._options)
        try:
            with _quiet_aiokafka():
                is_started = await unless(self._clients.start(), stop.wait())
            if is_started:
                self._put_together()
                await self._serve(stop)
        except KafkaError as wrong:
            raise ReplicaError(f"{self._replica} cannot go on: {wrong!r}") from wrong
        finally:
            with _quiet_aiokafka():
                await self._clients.close(self._close_s)

    async def send(self, topic: str, key: bytes | None, value: bytes) -> "asyncio.Future[None]":
        """Write a record with the replica's own producer; the future is done once all in-sync copies have it.

        With exactly_once, in handlers only: it is done at once, and the record is written when its event is committed.
        Raises MessageSizeTooLargeError: the topic does not take it.
        """
        await self._clients.sizes.check(topic, key, value)
        return await (self._outbox or self._clients.output).send(topic, key, value)

    def pause(self, partition: int) -> None:
        """Start no further event of a partition. One that moves starts unpaused. Raises KeyError: not held now."""
        self._queues.pause(partition)

    def resume(self, partition: int) -> None:
        """Undo `pause`. Raises KeyError: not held now."""
        self._queues.resume(partition)

    @property
    def partitions(self) -> tuple[int, ...]:
        """Partitions that are served now, ascending."""
        return self._queues.serving

    async def _bury(self, event: Event, wrong: Exception) -> None:
        """Write the dead letter of an event and wait until it is there."""
        topics = self._topics
        try:
            room = await self._clients.sizes.room(topics.dead_letters)
            key, value = encode_dead_letter(topics.stage or topics.group, event, wrong, now_us(), room)
            await (await self.send(topics.dead_letters, key, value))
        except Exception as refused:
            what = f"the dead letter of {event.topic}, partition {event.partition}, offset {event.offset}"
            where = f"cannot be written to {topics.dead_letters} ({told(refused)})"
            raise ReplicaError(f"{what} {where}; it was refused because of {told(wrong)}") from refused

    def health(self) -> Health:
        """Return whether the replica is well, and if not, why. Raises RuntimeError: it is not running yet."""
        if self._vitals is None:
            raise RuntimeError(f"{self._replica} is not running yet")
        return self._vitals.health()

    def collect(self) -> Iterable[Metric]:
        """Return its metrics: `registry.register(consumer)` of prometheus-client. None before it runs."""
        return self._vitals.collect() if self._vitals else ()

    def _put_together(self) -> None:
        clients, options, queues = self._clients, self._options, self._queues
        self._lease = Lease(options.session_s, options.rebalance_timeout_s)
        self._progress = ProgressReporter(clients.output, self._topics.progress, self._report)
        observed = None if self._measures_itself else self._latencies
        self._server = Server(
            queues, self._lease, self._handle, self._on_error, options, latencies=observed, group=self._topics.group
        )
        what = (clients.coordinator, queues, self._topics.events, options.commit_interval_s)
        self._committer = Committer(*what)
        if self._outbox and clients.transactions:
            self._committer = AtomicCommitter(*what, outbox=self._outbox, transactions=clients.transactions)
        self._handover = Handover(
            coordinator=clients.coordinator,
            assignor=clients.assignor,
            queues=queues,
            committer=self._committer,
            calls=Calls(self._listeners),
            newest_plan=lambda: clients.plans.newest,
            eager=options.delivery is Delivery.EAGER,
            release_s=min(1.0, options.session_s / 3, options.rebalance_timeout_s / 3),
        )
        self._prober = Prober(clients.coordinator.probe, self._lease)
        self._membership = Membership(
            replica=self._replica,
            subscribe=lambda: clients.consumer.subscribe([self._topics.events]),
            coordinator=clients.coordinator,
            assignor=clients.assignor,
            handover=self._handover,
            plans=clients.plans,
            changed=self._progress.changed,
            completed=self._prober.round_completed,
            failed=clients.failed,
            ended=clients.transactions.end if clients.transactions else None,
        )
        self._log_watch = LogWatch(clients.consumer, queues, self._topics.events, options.on_log_reset)
        clients.coordinator.out_of_range = self._log_watch.out_of_range
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
        clients.assignor.claims = lambda: queues.held
        clients.coordinator.conduct, clients.coordinator.lease = self._membership, self._lease

    async def _serve(self, stop: asyncio.Event) -> None:
        assert self._vitals is not None
        pages = Pages(self._options.http_host, self._options.http_port, self._vitals)
        self._vitals.pages = pages.start(self._connection.bootstrap_servers)
        await self._log_watch.look_at_id()
        await self._progress.report()
        duties: list[Coroutine[Any, Any, Any]] = [
            stop.wait(),
            Poller(self._clients.consumer, self._queues, self._topics.events).run(),
            *(self._server.run() for _ in range(self._options.concurrency)),
            self._server.watch(),
            self._committer.run(),
            self._log_watch.run(),
            self._clients.plans.follow(),
            self._progress.run(),
            self._membership.run(),
            self._prober.run(),
            self._lease.watch(),
            self._clients.output.watch(),
        ]
        tasks = [asyncio.ensure_future(duty) for duty in duties]
        try:
            await self._watch([*tasks, self._clients.failed])
            tasks[0] = asyncio.ensure_future(self._shut_down())
            await self._watch([*tasks, self._clients.failed])
        finally:
            for task in tasks:
                task.cancel()
            ended, late = await asyncio.wait(tasks, timeout=CANCEL_S)
            for task in ended:
                task.cancelled() or task.exception()  # seen: the first one was raised above
            if late:
                log.warning("%d handlers ignore that they were cancelled, and are left behind", len(late))
            await pages.stop()

    async def _watch(self, tasks: "list[asyncio.Future[Any]]") -> None:
        """Return when the first of `tasks` is done; only that one may end without an error."""
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for ended in done:
            ended.result()

    def _report(self) -> Progress:
        assert self._vitals is not None
        return self._vitals.progress()

    async def _shut_down(self) -> None:
        silent = silence(self._clients.coordinator.brokers, self._clients.coordinator.ask)
        try:
            if await unless(self._leave(), silent, self._options.drain_s + LEAVE_DEADLINE_S):
                return
        except TimeoutError:
            log.warning("left without an answer from Kafka; what was not committed will be served again")
            return
        left = served_again(await self._membership.abandon())
        log.warning("no broker has answered for %g s: nobody can take over; %s", SILENCE_S, left)
        self._close_s = FORLORN_S

    async def _leave(self) -> None:
        await self._membership.drain(self._options.drain_s)
        await self._progress.report()
        await self._clients.output.drained()


@contextmanager
def _quiet_aiokafka() -> Iterator[None]:
    """Hide the warnings of aiokafka's clients: an absent broker is reported in one line, at the deadline."""
    log = logging.getLogger("aiokafka")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _each(handle: Handler | None) -> BatchHandler:
    async def one(events: Any) -> Later:
        assert handle is not None
        return await handle(events[0])

    return one
