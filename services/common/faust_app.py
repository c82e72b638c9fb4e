"""Settings, app factory and Kafka driver of our Faust services. Importing this module has no side effect."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
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
from contracts.settings import WebPages, setting
from contracts.topics import AUTO_OFFSET_RESET, Group, KeyedTopics, qualified
from contracts.unpacking import MAX_POLL_BYTES, MAX_POLL_RECORDS, limit_unpacking, poll_limit
from services.common.pacing import PATIENCE_S, PacedFetcher
from services.consumer.connections import Client

SESSION_S: Final = 6.0
HEARTBEAT_S: Final = 1.0
PRODUCER_TIMEOUT_S: Final = 60.0
"""Longest wait of a record for the broker. A killed broker needs tens of seconds to recover its logs."""
MAX_TAKES: Final = 100  # records of a backlog that are taken before other tasks run
METADATA_MAX_AGE_MS: Final = 5_000
"""Age at which metadata is refreshed. If an old leader refuses a request for the first offset of a partition, aiokafka
does not look for the new leader. With Faust's default it would repeat the request for five minutes."""


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(WebPages, KeyedTopics):
    """Settings of all services on Faust. A service with its own settings extends this record."""

    data_dir: str = setting(".tailpack/services")
    """Working folder of Faust. It may be deleted, because the state is in Kafka."""
    instance: str = setting("0")
    """Name of this copy. A restart with the same name takes over its group membership at once."""
    commit_interval_s: float = setting(0.5, "s", above=0)
    """Time between commits. A crash repeats at most this much work, and repeats are dropped."""
    broker_deadline_s: float = setting(20.0, "s", least=0)
    """Longest wait for the broker and the topics at the start."""


def make_app(connection: Connection, group: Group, settings: ServiceSettings) -> faust.App:
    """Return a configured app for `group` that is not started. Set the callbacks of its transport.

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
    name = qualified(connection.namespace, group)
    folder = Path(settings.data_dir) / f"{name}-{settings.instance}"
    folder.mkdir(parents=True, exist_ok=True)
    app = faust.App(
        name,
        broker=[f"kafka://{address.strip()}" for address in connection.bootstrap_servers.split(",")],
        broker_credentials=credentials,
        store="memory://",
        autodiscover=False,
        web_enabled=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset=AUTO_OFFSET_RESET,
        producer_acks=-1,
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
    limit_unpacking()
    app.finalize()
    app.transport = app.producer_transport = _Transport(app.conf.broker_consumer, app)
    return app


class _ConsumerTask(AIOKafkaConsumerThread):  # type: ignore[misc]
    """Faust's consumer in the event loop of the service. With a thread, passing calls costs more than the fetches."""

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, thread_loop=consumer.loop, **options)

    async def start(self) -> None:
        self._thread_started.set()
        self._thread_running = self.thread_loop.create_future()
        self._serving = self.thread_loop.create_task(self._serve())
        await self._thread_running

    async def call_thread(self, call: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
        return await maybe_async(call(*arguments, **options))

    async def on_start(self) -> None:
        await super().on_start()
        PacedFetcher.pace(self._consumer._fetcher, self.transport.background, self.transport.pause_s)

    async def _gather_remaining_tasks(self) -> None:
        pass  # the loop has tasks of others

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        Client.adopt(consumer._client)
        # The consumer reads these when it starts, which is later.
        consumer._fetch_max_bytes = MAX_POLL_BYTES
        consumer._isolation_level = "read_committed"  # skip output of aborted transactions of Payment
        return consumer

    async def _fetch_records(self, consumer: Any, *arguments: Any, **options: Any) -> Any:
        with poll_limit(MAX_POLL_BYTES):
            return await super()._fetch_records(consumer, *arguments, **options)


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
                    if message.offset >= (read[place] or 0):
                        await take(message)
                        read[place] = message.offset
                    if (takes := takes + 1) % MAX_TAKES == 0:
                        await asyncio.sleep(0)
                await asyncio.sleep(0)  # getmany may return at once
        except ConsumerStoppedError:
            if not self.app.should_stop:
                raise

    def done(self, place: Any, offset: int) -> None:
        """Commit this offset at the next commit: all records of the partition before it are done."""
        self._acked[place] = [offset]

    def _new_offset(self, place: Any) -> int | None:
        return next(iter(self._acked[place]), None)


class _Producer(Producer):  # type: ignore[misc]
    def _new_producer(self, transactional_id: str | None = None) -> aiokafka.AIOKafkaProducer:
        producer = super()._new_producer(transactional_id=transactional_id)
        Client.adopt(producer.client)
        send, may_write = producer.client.send, self.transport.may_write

        async def send_if_allowed(node_id: int, request: Any, **options: Any) -> Any:
            if isinstance(request, ProduceRequest):
                may_write()
            return await send(node_id, request, **options)

        producer.client.send = send_if_allowed
        accumulator = producer._message_accumulator
        append = accumulator._append_batch

        def append_patiently(builder: Any, place: Any) -> Any:
            batch = append(builder, place)
            if place.topic in self.transport.background:  # all such batches end at the same time, for one request
                batch._linger_time = PATIENCE_S - batch._ctime % PATIENCE_S
            return batch

        accumulator._append_batch = append_patiently
        return producer

    def _settings_extra(self) -> dict[str, Any]:
        # Without idempotence a retry after a lost response would write the record twice.
        return {"acks": "all", "enable_idempotence": True}


class _Transport(Transport):  # type: ignore[misc]
    """Connects an app to Kafka, and to the service that takes its messages."""

    Consumer = _Consumer
    Producer = _Producer
    may_write: Callable[[], None]
    """May raise KafkaError before each produce request, also before a retry."""
    take: Callable[[Any], Awaitable[None]]
    """Takes each message. Faust's agents would cost four tasks and two queues for each."""
    background: Collection[str]
    """Topics on which no order waits. Their records are read and written every PATIENCE_S."""
    pause_s: float
    """Pause between two fetches of other topics, seconds."""


class ProcessPausedError(KafkaError):  # type: ignore[misc]
    """The process was paused longer than its group waits for a member, so it must not write any more."""


class Pulse:
    """Detects pauses of the event loop, which sends no heartbeats to the group then."""

    def __init__(self, limit_s: float, clock: Callable[[], float] = monotonic_s) -> None:
        self._limit_s, self._clock = limit_s, clock
        self._last_s = math.inf
        self.gap_s = 0.0
        """Longest pause that exceeded the limit, seconds. 0: none."""

    def begin(self) -> None:
        """Begin to measure. Call `beat` regularly from now on. Before, a slow broker may delay the start."""
        self._last_s = self._clock()

    def beat(self) -> None:
        """Record the time since the last beat if it exceeds the limit."""
        now_s = self._clock()
        if now_s - self._last_s > self._limit_s:
            self.gap_s = max(self.gap_s, now_s - self._last_s)
        self._last_s = max(self._last_s, now_s)

    def require_no_pause(self) -> None:
        """Raise ProcessPausedError if the process was ever paused too long. A pause that has just ended counts too."""
        self.beat()
        if self.gap_s:
            raise ProcessPausedError(self.describe_pause())

    def describe_pause(self) -> str:
        """Return a message for the log that describes the pause."""
        return (
            f"this process was paused for {self.gap_s:.1f} s, longer than its group waits for a member: another "
            "instance may have taken over; restart this one"
        )
