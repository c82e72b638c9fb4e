"""Settings, app factory and Kafka driver of our Faust services. Importing this module has no side effect."""

import asyncio
import math
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiokafka
import faust
from aiokafka.errors import ConsumerStoppedError, KafkaError
from aiokafka.protocol.produce import ProduceRequest
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Producer, Transport
from mode.utils.futures import maybe_async

from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.settings import setting
from contracts.topics import AUTO_OFFSET_RESET, Group, KeyedTopics, qualified
from services.common.unpacking import MAX_POLL_BYTES, MAX_POLL_RECORDS, limit_unpacking, poll_limit

SESSION_S: Final = 6.0
HEARTBEAT_S: Final = 1.0
PRODUCER_TIMEOUT_S: Final = 60.0
"""Longest wait of a record for the broker. A killed broker needs tens of seconds to recover its logs."""
PACE_S: Final = 0.01
"""Shortest time between two fetches, seconds. At 100 records/s a fetch brings two of them, and waits 2.5 ms more."""
PATIENCE_S: Final = 0.05
"""How long records wait for others if no order waits for them, seconds. They share requests to the broker."""
MAX_TAKES: Final = 100  # records of a backlog that are taken before other tasks run
FULL_PAUSE_S: Final = 0.02  # pause between two checks whether enough records were acknowledged
FETCH_WAIT_MS: Final = 200
"""Longest wait of one fetch at the broker, ms. If Faust takes more than 0.1 s to take the records of a partition,
aiokafka fetches the others first, and that partition waits until their fetch returns: 1500 ms by Faust's default."""

RESTING_FETCH_WAIT_MS: Final = 100
"""The same while background topics rest: their partitions join the next fetch."""
METADATA_MAX_AGE_MS: Final = 5_000
"""Age at which metadata is refreshed. If an old leader refuses a request for the first offset of a partition, aiokafka
does not look for the new one. With Faust's default it would repeat the request for five minutes."""


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(KeyedTopics):
    """Settings of all services on Faust. A service with its own settings extends this record."""

    http_host: str = setting("127.0.0.1")
    """Address of the HTTP interface; 0.0.0.0 in a container."""
    http_port: int = setting(0, least=0, most=65535)
    """Port of the HTTP interface. 0: no interface."""
    data_dir: str = setting(".tailpack/services")
    """Working folder of Faust. It may be deleted, because the state is in Kafka."""
    instance: str = setting("0")
    """Name of this copy. A restart with the same name takes over its group membership at once."""
    commit_interval_s: float = setting(0.5, "s", above=0)
    """Time between commits. A crash repeats at most this much work, and repeats are dropped."""
    broker_deadline_s: float = setting(20.0, "s", least=0)
    """Longest wait for the broker and the topics at the start."""


Take = Callable[[Any], Awaitable[None]]


def make_app(
    connection: Connection,
    group: Group,
    settings: ServiceSettings,
    *,
    may_write: Callable[[], None],
    take: Take,
    background: Collection[str],
) -> faust.App:
    """Return a configured app for `group` that is not started.

    may_write: may raise KafkaError before each write. take: takes a message of a topic in `app.topics`. It replaces
    Faust's agents, which cost four tasks and two queues for each message.
    background: topics on which no order waits. Their records are read and written every PATIENCE_S.
    """
    name = qualified(connection.namespace, group)
    folder = Path(settings.data_dir) / f"{name}-{settings.instance}"
    folder.mkdir(parents=True, exist_ok=True)
    app = faust.App(
        name,
        **faust_options(connection),
        datadir=folder,
        # A static member: after a crash its successor takes over at once, without waiting for the session timeout.
        consumer_group_instance_id=f"{name}-{settings.instance}",
        broker_session_timeout=SESSION_S,
        broker_heartbeat_interval=HEARTBEAT_S,
        broker_rebalance_timeout=15.0,
        broker_request_timeout=15.0,
        broker_commit_interval=settings.commit_interval_s,
        broker_max_poll_records=MAX_POLL_RECORDS,
        consumer_metadata_max_age_ms=METADATA_MAX_AGE_MS,
        producer_metadata_max_age_ms=METADATA_MAX_AGE_MS,
        producer_request_timeout=PRODUCER_TIMEOUT_S,
        stream_wait_empty=False,  # the stage drains with its own deadline
    )
    use_our_transport(app, may_write)
    app.transport.take = take
    app.transport.background = app.producer_transport.background = frozenset(background)
    return app


def limit_batches(app: faust.App, largest: int) -> None:
    """Limit batches to `largest` bytes, because a broker rejects an oversized batch as a whole."""
    app.producer_transport.largest_batch = min(largest, _Transport.largest_batch)


def faust_options(connection: Connection) -> dict[str, Any]:
    """Return the options of every Faust app: the Kafka connection, and unused features of Faust turned off.

    Raises InvalidSettingsError for a bad properties file or certificates that cannot be loaded.
    """
    options = connection.aiokafka()
    context = options.get("ssl_context")
    credentials = faust.SSLCredentials(context) if context else None
    if "sasl_mechanism" in options:
        credentials = faust.SASLCredentials(
            username=options["sasl_plain_username"],
            password=options["sasl_plain_password"],
            mechanism=options["sasl_mechanism"],
            ssl_context=context,
        )
    return {
        "broker": [f"kafka://{address.strip()}" for address in connection.bootstrap_servers.split(",")],
        "broker_credentials": credentials,
        "store": "memory://",
        "autodiscover": False,
        "web_enabled": False,
        "topic_disable_leader": True,
        "consumer_auto_offset_reset": AUTO_OFFSET_RESET,
        "producer_acks": -1,
    }


def use_our_transport(app: faust.App, may_write: Callable[[], None] = lambda: None) -> None:
    """Finish the app's configuration with short fetches and an idempotent producer. Faust has no settings for them."""
    limit_unpacking()
    app.finalize()
    app.transport = _Transport(app.conf.broker_consumer, app)
    app.producer_transport = _Transport(app.conf.broker_producer, app)
    app.producer_transport.may_write = may_write


class _TaskWorker:
    """Runs a service of Faust, which has its own thread otherwise, in the event loop that started it.

    Passing a call and its result between two threads costs more than the fetch.
    """

    def __init__(self, service: Any) -> None:
        self._service = service
        self._serving: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._serving = asyncio.get_running_loop().create_task(self._service._serve())

    def stop(self) -> None:
        """Do nothing: the service has ended when Faust calls this."""


class _ConsumerTask(AIOKafkaConsumerThread):  # type: ignore[misc]
    Worker = _TaskWorker

    def __init__(self, consumer: Any, **options: Any) -> None:
        self._rested_s = -math.inf
        self._fetched_s = defaultdict[int, float](float)  # broker → time of the last fetch
        super().__init__(consumer, thread_loop=consumer.loop, **options)

    async def call_thread(self, call: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
        return await maybe_async(call(*arguments, **options))

    async def on_start(self) -> None:
        await super().on_start()
        fetcher = self._consumer._fetcher
        fetch = fetcher._proc_fetch_request

        async def fetch_paced(assignment: Any, broker: int, request: Any) -> Any:
            if (wait_s := self._fetched_s[broker] + PACE_S - monotonic_s()) > 0:
                try:
                    await asyncio.sleep(wait_s)
                except asyncio.CancelledError:
                    return False  # as aiokafka's own
            self._fetched_s[broker] = monotonic_s()
            return await fetch(assignment, broker, request)

        fetcher._proc_fetch_request = fetch_paced

    async def _gather_remaining_tasks(self) -> None:
        pass  # the loop has tasks of others

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # The consumer reads these when it starts, which is later.
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._fetch_max_bytes = MAX_POLL_BYTES
        consumer._isolation_level = "read_committed"  # skip output of aborted transactions of Payment
        return consumer

    async def _fetch_records(self, consumer: Any, *arguments: Any, **options: Any) -> Any:
        with poll_limit(MAX_POLL_BYTES):
            records = await super()._fetch_records(consumer, *arguments, **options)
        background = self.transport.background
        if background and any(partition.topic in background for partition in records):
            last_s, self._rested_s = self._rested_s, monotonic_s()
            if self._rested_s - last_s < 2 * PATIENCE_S:  # else a rest would only add a fetch
                self._rest(consumer)
        return records

    def _rest(self, consumer: Any) -> None:
        """Leave the partitions of background topics out of fetches for PATIENCE_S."""
        assignment, fetcher = consumer._subscription.subscription.assignment, consumer._fetcher
        background = self.transport.background
        states = [assignment.state_value(place) for place in assignment.tps if place.topic in background]
        for state in states:
            state.pause()
        fetcher._fetch_max_wait_ms = RESTING_FETCH_WAIT_MS

        def resume() -> None:
            fetcher._fetch_max_wait_ms = FETCH_WAIT_MS
            for state in states:
                state.resume()

        self.thread_loop.call_later(PATIENCE_S, resume)


class _Consumer(Consumer):  # type: ignore[misc]
    def _new_consumer_thread(self) -> _ConsumerTask:
        return _ConsumerTask(self, loop=self.loop, beacon=self.beacon)

    async def verify_all_partitions_active(self) -> None:
        """Do nothing: the health page has this check."""

    async def _drain_messages(self, fetcher: Any) -> None:
        """Pass all messages to `take`, until the app stops or its group rebalances."""
        read, take = self._read_offset, self.transport.take
        try:
            while not (self.should_stop or fetcher.should_stop):
                takes = 0
                async for place, message in self.getmany(timeout=1.0):
                    offset, last = message.offset, read[place]
                    if last is not None and offset < last:
                        continue
                    if last and offset > last + 1:  # markers of transactions
                        await self._add_gap(place, last + 1, offset)
                    self._unacked_messages.add(message)
                    await take(message)
                    read[place] = offset
                    if (takes := takes + 1) % MAX_TAKES == 0:
                        await asyncio.sleep(0)
                await asyncio.sleep(0)  # getmany may return at once
        except ConsumerStoppedError:
            if not self.app.should_stop:
                raise

    async def _getmany(self, *arguments: Any, **options: Any) -> Any:
        if sum(len(each.value or b"") for each in self.unacked) < MAX_POLL_BYTES:
            return await super()._getmany(*arguments, **options)
        await asyncio.sleep(FULL_PAUSE_S)
        return {}


class _Producer(Producer):  # type: ignore[misc]
    def _new_producer(self, transactional_id: str | None = None) -> aiokafka.AIOKafkaProducer:
        """Return a producer that calls `may_write` before each produce request, also before a retry."""
        producer = super()._new_producer(transactional_id=transactional_id)
        send, may_write = producer.client.send, self.app.producer_transport.may_write

        async def send_if_allowed(node_id: int, request: Any, **options: Any) -> Any:
            if isinstance(request, ProduceRequest):
                may_write()
            return await send(node_id, request, **options)

        producer.client.send = send_if_allowed
        producer._message_accumulator._append_batch = partial(self._append, producer._message_accumulator)
        return producer

    def _append(self, accumulator: Any, builder: Any, partition: Any) -> Any:
        batch = type(accumulator)._append_batch(accumulator, builder, partition)
        if partition.topic in self.transport.background:  # all such batches end at the same time, for one request
            batch._linger_time = PATIENCE_S - batch._ctime % PATIENCE_S
        return batch

    def _settings_extra(self) -> dict[str, Any]:
        # Without idempotence a retry after a lost response would write the record twice.
        return {"acks": "all", "enable_idempotence": True, "max_batch_size": self.app.producer_transport.largest_batch}


class _Transport(Transport):  # type: ignore[misc]
    largest_batch = 16_384  # bytes
    background: frozenset[str] = frozenset()
    Consumer = _Consumer
    Producer = _Producer


BEAT_S: Final = 0.25


class ProcessPausedError(KafkaError):  # type: ignore[misc]
    """The process was paused longer than its group waits for a member, so it must not write any more."""


class Pulse(threading.Thread):
    """Detects pauses of the process from its start on, independent of its event loops. `start` it once."""

    def __init__(self, limit_s: float, clock: Callable[[], float] = monotonic_s) -> None:
        super().__init__(daemon=True, name="pulse")
        self._limit_s = limit_s
        self._clock = clock
        self._last_s = clock()
        self._stopped = threading.Event()
        self.gap_s = 0.0
        """Longest pause of the process that exceeded the limit, seconds. 0: none."""

    def run(self) -> None:
        """Call `beat` regularly until `end` is called."""
        self._last_s = self._clock()  # a slow broker may have delayed the start
        while not self._stopped.wait(BEAT_S):
            self.beat()

    def end(self) -> None:
        """Stop the thread."""
        self._stopped.set()

    def beat(self) -> None:
        """Record the time since the last beat if it exceeds the limit."""
        now_s = self._clock()
        if now_s - self._last_s > self._limit_s:
            self.gap_s = max(self.gap_s, now_s - self._last_s)
        self._last_s = now_s  # set after gap_s: two threads read both

    def require_no_pause(self) -> None:
        """Raise ProcessPausedError if the process was ever paused too long, even before the next beat."""
        self.beat()
        if self.gap_s:
            raise ProcessPausedError(self.describe_pause())

    def describe_pause(self) -> str:
        """Return a message for the log that describes the pause."""
        return (
            f"this process was paused for {self.gap_s:.1f} s, longer than its group waits for a member: another "
            "instance may have taken over; restart this one"
        )
