"""`python -m tailpack.labs.generator`: a steady load into payments.requested, round robin, until SIGTERM.

A process of its own, so that nothing the experiment does makes an event late. Event k is intended at k / rate.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec
import numpy as np
from confluent_kafka import KafkaError, Message, Producer

from contracts.connection import Connection
from contracts.topics import Topic, qualified
from contracts.validation import InvalidSettingsError, from_environment
from loadgen.curves import IntArray
from loadgen.events import Event, PaymentEvent, Record
from loadgen.orders import Orders
from loadgen.pacing import Pacer
from loadgen.result import lateness_percentile_us
from tailpack.labs.clients import producer

LEAD_US: Final = 300_000
"""The first event is intended this long after the generator is ready."""
FLUSH_DEADLINE_S: Final = 10.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Environment: TAILPACK_RATE, TAILPACK_PARTITIONS, …"""

    rate: float
    """Events/s."""
    partitions: int
    """Event k goes to partition k modulo this."""
    out_dir: str
    """Folder that takes STARTED_FILE and SENT_FILE."""
    seed: int = 1
    longest_s: float = 7200.0
    """It ends by itself after so long."""


STARTED_FILE: Final = "load-started.json"
SENT_FILE: Final = "load-sent.json"


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What the generator did. Lateness is send time minus intended time, µs."""

    started_us: int
    rate: float
    sent: int
    refused: tuple[int, ...]
    """Numbers of the events that the broker did not acknowledge."""
    lateness_p50_us: int
    lateness_p99_us: int
    lateness_max_us: int

    def acknowledged_us(self) -> IntArray:
        """Return the intended times of the events that the broker took."""
        times = self.started_us + offsets_us(self.rate, self.sent)
        return np.delete(times, np.array(self.refused, dtype=np.int64))


class _StoppedError(Exception):
    """SIGTERM came."""


def offsets_us(rate: float, events: int) -> IntArray:
    """Return the intended times of the first `events` events, µs after the start."""
    return np.asarray(np.arange(events) * 1e6 / rate, dtype=np.float64).astype(np.int64)


class Generator:
    """Sends events at their time and counts what the broker took."""

    def __init__(self, settings: Settings, connection: Connection) -> None:
        self._settings = settings
        self._topic = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)
        self._producer = Producer(producer(connection))
        self._orders = Orders(connection.namespace, settings.seed)
        self._refused: list[int] = []
        self._produced = 0
        self.stopping = False

    def run(self, out: Path) -> Sent:
        """Send until SIGTERM; return what was sent once the broker has answered for all of it."""
        self._producer.list_topics(self._topic, timeout=30)
        started_us = _now_us() + LEAD_US
        offset_us = offsets_us(self._settings.rate, int(self._settings.longest_s * self._settings.rate))
        pacer = Pacer(
            offset_us,
            self._events(started_us, offset_us),
            started_us=started_us,
            send=self._send,
            now_us=_now_us,
            pause=self._pause,
        )
        (out / STARTED_FILE).write_bytes(msgspec.json.encode({"started_us": started_us}))
        with suppress(_StoppedError):
            pacer.run()
        outstanding = self._producer.flush(FLUSH_DEADLINE_S)
        late_us = pacer.lateness_us
        if outstanding or not len(late_us):
            raise RuntimeError(f"{outstanding} of {pacer.sent} events unanswered after {FLUSH_DEADLINE_S:g} s")
        return Sent(
            started_us=started_us,
            rate=self._settings.rate,
            sent=pacer.sent,
            refused=tuple(self._refused),
            lateness_p50_us=lateness_percentile_us(late_us, 0.5) or 0,
            lateness_p99_us=lateness_percentile_us(late_us, 0.99) or 0,
            lateness_max_us=int(late_us.max()),
        )

    def _events(self, started_us: int, offset_us: IntArray) -> Iterator[Event]:
        for number, offset in enumerate(offset_us.tolist()):
            yield PaymentEvent(self._orders.order(number), started_us + offset, number % self._settings.partitions)

    def _send(self, record: Record) -> None:
        number = self._produced
        self._produced += 1

        def answered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self._refused.append(number)

        self._producer.produce(
            self._topic, record.value, record.key, record.partition, headers=record.headers, on_delivery=answered
        )

    def _pause(self, pause_s: float) -> None:
        if self.stopping:
            raise _StoppedError
        self._producer.poll(0)
        time.sleep(pause_s)  # the load's own pace


def main() -> int:
    """Return the exit status: 0 stopped as asked, 2 bad settings."""
    try:
        settings, connection = from_environment(os.environ, Settings), from_environment(os.environ, Connection)
    except InvalidSettingsError as wrong:
        sys.stderr.write("".join(f"{problem}\n" for problem in wrong.problems))
        return 2
    generator = Generator(settings, connection)

    def stop(_: int, __: FrameType | None) -> None:
        generator.stopping = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    sent = generator.run(Path(settings.out_dir))
    path = Path(settings.out_dir) / SENT_FILE
    path.with_suffix(".tmp").write_bytes(msgspec.json.encode(sent))
    path.with_suffix(".tmp").replace(path)
    return 0


def _now_us() -> int:
    return time.time_ns() // 1000


if __name__ == "__main__":
    sys.exit(main())
