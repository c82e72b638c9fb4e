"""Faust as our services use it: its settings, the app factory, and its Kafka driver. Nothing happens at import."""

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
from services.common.header_names import read_any_header_name

SESSION_S: Final = 6.0
HEARTBEAT_S: Final = 1.0
PRODUCER_TIMEOUT_S: Final = 60.0
"""How long a record may wait for the broker. A killed broker recovers its logs for tens of seconds."""
LINGER_S: Final = 0.002
FETCH_WAIT_MS: Final = 50
"""Longest wait of one fetch, ms. A partition that was just read has to wait until the fetch for the others returns,
so Faust's 1500 ms would add up to that much latency at low rates; 50 ms costs twenty small requests a second."""

METADATA_MAX_AGE_MS: Final = 5_000
"""How long a partition that has got another leader may be asked for in the wrong place. aiokafka does not look for the
new leader when the old one refuses to tell where the partition begins, so it would ask it for Faust's five minutes."""


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(KeyedTopics):
    """Settings of all services on Faust; a service with more of them extends this record."""

    http_host: str = setting("127.0.0.1")
    """Address of the HTTP interface; 0.0.0.0 in a container."""
    http_port: int = setting(0, least=0, most=65535)
    """Port of the HTTP interface; 0: none."""
    data_dir: str = setting(".tailpack/services")
    """Working folder of Faust; it may be deleted, because the state is in Kafka."""
    instance: str = setting("0")
    """Name of this copy. A restart with the same name takes over its group membership at once."""
    commit_interval_s: float = setting(0.5, "s", above=0)
    """Time between commits. A crash repeats at most this much work, and repeats are dropped."""
    broker_deadline_s: float = setting(20.0, "s", least=0)
    """Longest wait for the broker and the topics at the start."""


def make_app(
    connection: Connection, group: Group, settings: ServiceSettings, may_write: Callable[[], None]
) -> faust.App:
    """Return an app for `group` that is configured, not started. may_write: raises KafkaError to stop each write."""
    name = qualified(connection.namespace, group)
    folder = Path(settings.data_dir) / f"{name}-{settings.instance}"
    folder.mkdir(parents=True, exist_ok=True)
    app = faust.App(
        name,
        **faust_options(connection),
        datadir=folder,
        # A static member: after a crash its successor takes over at once, not after the session time-out.
        consumer_group_instance_id=f"{name}-{settings.instance}",
        broker_session_timeout=SESSION_S,
        broker_heartbeat_interval=HEARTBEAT_S,
        broker_rebalance_timeout=15.0,
        broker_request_timeout=15.0,
        broker_commit_interval=settings.commit_interval_s,
        consumer_metadata_max_age_ms=METADATA_MAX_AGE_MS,
        producer_metadata_max_age_ms=METADATA_MAX_AGE_MS,
        producer_linger=LINGER_S,
        producer_request_timeout=PRODUCER_TIMEOUT_S,
        stream_wait_empty=False,  # the stage drains itself, with a deadline
        agent_supervisor=CrashingSupervisor,  # a restarted agent would go on without the record it failed on
    )
    use_our_transport(app, may_write)
    return app


def limit_batches(app: faust.App, largest: int) -> None:
    """Send no more together than `largest` bytes: what a broker refuses as too large it refuses whole."""
    app.producer_transport.largest_batch = min(largest, _Transport.largest_batch)


def faust_options(connection: Connection) -> dict[str, Any]:
    """Return what every Faust app takes: where Kafka is, and nothing of Faust's that we do without.

    Raises InvalidSettingsError for a bad properties file or certificates that cannot be loaded.
    """
    known = connection.aiokafka()
    context = known.get("ssl_context")
    credentials = faust.SSLCredentials(context) if context else None
    if "sasl_mechanism" in known:
        credentials = faust.SASLCredentials(
            username=known["sasl_plain_username"],
            password=known["sasl_plain_password"],
            mechanism=known["sasl_mechanism"],
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
    """Finish the app's configuration with short fetches and an idempotent producer, which Faust lets nobody choose."""
    read_any_header_name()
    app.finalize()
    app.transport = _Transport(app.conf.broker_consumer, app)
    app.producer_transport = _Transport(app.conf.broker_producer, app)
    app.producer_transport.may_write = may_write


class _ConsumerThread(AIOKafkaConsumerThread):  # type: ignore[misc]
    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # Read when the consumer starts, which is after this.
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._isolation_level = "read_committed"  # what an aborted transaction of Payment wrote was never said
        return consumer


class _Consumer(Consumer):  # type: ignore[misc]
    def _new_consumer_thread(self) -> _ConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)


class _Producer(Producer):  # type: ignore[misc]
    def _new_producer(self, transactional_id: str | None = None) -> aiokafka.AIOKafkaProducer:
        """Return a producer that asks before each request, also before it repeats one, whether it may still write."""
        producer = super()._new_producer(transactional_id=transactional_id)
        send, may_write = producer.client.send, self.app.producer_transport.may_write

        async def asked(node_id: int, request: Any, **how: Any) -> Any:
            if isinstance(request, ProduceRequest):
                may_write()
            return await send(node_id, request, **how)

        producer.client.send = asked
        return producer

    def _settings_extra(self) -> dict[str, Any]:
        # Without idempotence a send that is repeated because its answer was lost writes the record twice.
        return {"acks": "all", "enable_idempotence": True, "max_batch_size": self.app.producer_transport.largest_batch}


class _Transport(Transport):  # type: ignore[misc]
    largest_batch = 16_384  # bytes of records that the producer sends together
    Consumer = _Consumer
    Producer = _Producer


class RawSchema(faust.Schema):  # type: ignore[misc]
    """Keys and values stay bytes: decoding is the domain's, and a bad record must reach it to become a dead letter."""

    def compile(self, app: Any, **_: Any) -> Any:
        """Return the function that turns a message into an event."""

        async def decode(message: Any, *, propagate: bool = False) -> Any:
            return app.create_event(message.key, message.value, message.headers, message)

        return decode


BEAT_S: Final = 0.25


class StoodStillError(KafkaError):  # type: ignore[misc]
    """The process stood still for too long, and may write nothing more."""


class Pulse(threading.Thread):
    """Beats while the process runs, whatever its event loops do. `start` it once."""

    def __init__(self, longest_s: float, clock: Callable[[], float] = monotonic_s) -> None:
        super().__init__(daemon=True, name="pulse")
        self._longest_s = longest_s
        self._clock = clock
        self._last_s = clock()
        self._stopped = threading.Event()
        self.gap_s = 0.0
        """Longest gap that was too long; 0 without one."""

    def run(self) -> None:
        """Beat until `end`."""
        while not self._stopped.wait(BEAT_S):
            self.beat()

    def end(self) -> None:
        """Beat no more."""
        self._stopped.set()

    def beat(self) -> None:
        """Notice how long ago the last beat was."""
        now_s = self._clock()
        if now_s - self._last_s > self._longest_s:
            self.gap_s = max(self.gap_s, now_s - self._last_s)
        self._last_s = now_s  # after the gap: two threads look at both

    def require(self) -> None:
        """Raise StoodStillError once the process has stood still for too long; also before the first beat after it."""
        self.beat()
        if self.gap_s:
            raise StoodStillError(self.told())

    def told(self) -> str:
        """Return what happened, in a sentence."""
        return (
            f"this process stood still for {self.gap_s:.1f} s, longer than its group waits for it: another copy may "
            "have taken over; restart me"
        )
