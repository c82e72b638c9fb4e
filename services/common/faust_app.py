"""Settings, app factory and Kafka driver of our Faust services. Importing this module has no side effect."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiokafka
import faust
from aiokafka.errors import KafkaError
from aiokafka.protocol.produce import ProduceRequest
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Producer, Transport
from mode.supervisors import CrashingSupervisor

from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.settings import setting
from contracts.topics import AUTO_OFFSET_RESET, Group, KeyedTopics, qualified
from contracts.unpacking import MAX_POLL_BYTES, MAX_POLL_RECORDS, limit_unpacking, poll_limit

SESSION_S: Final = 6.0
HEARTBEAT_S: Final = 1.0
PRODUCER_TIMEOUT_S: Final = 60.0
"""Longest wait of a record for the broker. A killed broker needs tens of seconds to recover its logs."""
LINGER_S: Final = 0.002
FULL_PAUSE_S: Final = 0.02  # pause between two checks whether enough records were acknowledged
FETCH_WAIT_MS: Final = 200
"""Longest wait of one fetch at the broker, ms. If Faust takes more than 0.1 s to take the records of a partition,
aiokafka fetches the others first, and that partition waits until their fetch returns: 1500 ms by Faust's default."""

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


def make_app(
    connection: Connection, group: Group, settings: ServiceSettings, may_write: Callable[[], None]
) -> faust.App:
    """Return a configured app for `group`, not started. may_write: called before each write; may raise KafkaError."""
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
        producer_linger=LINGER_S,
        producer_request_timeout=PRODUCER_TIMEOUT_S,
        stream_wait_empty=False,  # the stage drains with its own deadline
        agent_supervisor=CrashingSupervisor,  # a restarted agent would skip the record on which it failed
    )
    use_our_transport(app, may_write)
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


class _ConsumerThread(AIOKafkaConsumerThread):  # type: ignore[misc]
    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # The consumer reads these when it starts, which is later.
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._fetch_max_bytes = MAX_POLL_BYTES
        consumer._isolation_level = "read_committed"  # skip output of aborted transactions of Payment
        return consumer

    async def _fetch_records(self, *arguments: Any, **options: Any) -> Any:
        with poll_limit(MAX_POLL_BYTES):
            return await super()._fetch_records(*arguments, **options)


class _Consumer(Consumer):  # type: ignore[misc]
    def _new_consumer_thread(self) -> _ConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

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
        return producer

    def _settings_extra(self) -> dict[str, Any]:
        # Without idempotence a retry after a lost response would write the record twice.
        return {"acks": "all", "enable_idempotence": True, "max_batch_size": self.app.producer_transport.largest_batch}


class _Transport(Transport):  # type: ignore[misc]
    largest_batch = 16_384  # bytes
    Consumer = _Consumer
    Producer = _Producer


class RawSchema(faust.Schema):  # type: ignore[misc]
    """Keeps keys and values as bytes. The domain decodes them, and turns a bad record into a dead letter."""

    def compile(self, app: Any, **_: Any) -> Any:
        """Return the function that turns a message into an event."""

        async def decode(message: Any, *, propagate: bool = False) -> Any:
            return app.create_event(message.key, message.value, message.headers, message)

        return decode


BEAT_S: Final = 0.25


class ProcessPausedError(KafkaError):  # type: ignore[misc]
    """The process was paused longer than its group waits for a member, so it must not write any more."""


class Pulse(threading.Thread):
    """Detects pauses of the whole process from its start on, in a thread of its own. Call `start` once."""

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
