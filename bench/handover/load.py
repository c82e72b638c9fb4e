"""The load of an experiment, in a process of its own so that the experiment makes no event late.

`python -m bench.handover.load` sends into payments.requested, round robin, until SIGTERM; event k is due at k / rate.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from confluent_kafka import KafkaError, Message, Producer

from contracts.clock import now_us
from contracts.connection import Connection, read_settings
from contracts.settings import Settings
from contracts.topics import Topic, qualified
from loadgen.orders import Orders, payment_event
from report.measures import percentile_us

LEAD_US: Final = 300_000
"""The first event is intended this long after the generator is ready."""
LONGEST_PAUSE_S: Final = 0.02
FLUSH_DEADLINE_S: Final = 10.0


@dataclass(frozen=True, kw_only=True)
class LoadSettings(Settings):
    """Environment of the process: TAILPACK_RATE, TAILPACK_PARTITIONS, …"""

    rate: float
    """Events/s."""
    partitions: int
    """Event k goes to partition k modulo this."""
    seed: int
    """Of the orders."""
    sent_file: str
    """Takes what was sent."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What the generator did. Lateness is send time minus intended time, µs."""

    acknowledged_us: tuple[int, ...]
    """Intended times of the events that the broker took."""
    lateness_p99_us: int


def send_until(stopped: Callable[[], bool], settings: LoadSettings, connection: Connection) -> Sent:
    """Send event after event, never early; return what was sent once the broker has answered for all of it."""
    topic = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)
    producer = Producer(connection.librdkafka() | {"linger.ms": "0", "enable.idempotence": "true"})
    producer.list_topics(topic, timeout=30)
    orders = Orders(connection.namespace, settings.seed)
    acknowledged_us: list[int] = []

    def answered(intended_us: int) -> Callable[[KafkaError | None, Message], None]:
        return lambda error, _: acknowledged_us.append(intended_us) if error is None else None

    late_us: list[int] = []
    started_us = now_us() + LEAD_US
    while not stopped():
        number = len(late_us)
        intended_us = started_us + int(number * 1e6 / settings.rate)
        wait_s = (intended_us - now_us()) / 1e6
        if wait_s > 0:
            producer.poll(0)
            time.sleep(min(wait_s, LONGEST_PAUSE_S))  # the load's own pace
            continue
        event = payment_event(orders.order(number), intended_us, number % settings.partitions)
        at_us = now_us()
        key, value, headers, partition = event(at_us)
        producer.produce(topic, value, key, partition, headers=headers, on_delivery=answered(intended_us))
        late_us.append(at_us - intended_us)
    unanswered = producer.flush(FLUSH_DEADLINE_S)
    if unanswered or not late_us:
        raise RuntimeError(f"{unanswered} of {len(late_us)} events unanswered after {FLUSH_DEADLINE_S:g} s")
    return Sent(
        acknowledged_us=tuple(acknowledged_us),
        lateness_p99_us=percentile_us(np.array(late_us, dtype=np.int64), 0.99),
    )


if __name__ == "__main__":
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop.append(number))
    where, told = read_settings(os.environ, LoadSettings)
    Path(told.sent_file).write_bytes(msgspec.json.encode(send_until(lambda: bool(stop), told, where)))
