"""μ_eff: one Payment replica against a standing backlog on a broker of its own."""

import os
import tempfile
import time
import uuid
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from rich.console import Console

from bench.results import ServiceRateRow
from contracts.connection import Connection
from contracts.topics import Topic, qualified
from loadgen.orders import Orders, payment_event
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.local.processes import Child
from tailpack.local.resources import ResourceMeter
from tailpack.local.topics import create_topics
from tailpack.watch import Watcher

DEADLINE_FACTOR: Final = 3.0
METER_EVERY_S: Final = 1.0


def measure(service_time_s: float, events: int, console: Console) -> ServiceRateRow:
    """Serve `events` that lie ready and time them from the first done to the last.

    Raises TailpackError when they are not done within three times the ideal time, and half a minute.
    """
    with tempfile.TemporaryDirectory() as temporary, console.status(f"serving {events} events of {service_time_s} s"):
        broker = Broker(Path(temporary) / "kafka")
        try:
            connection = Connection(bootstrap_servers=broker.start(), namespace=f"rate-{uuid.uuid4().hex[:8]}")
            create_topics(connection, payment_partitions=1)
            _fill(connection, events)
            return _serve(connection, service_time_s, events, Path(temporary))
        finally:
            broker.stop()


def _fill(connection: Connection, events: int) -> None:
    producer = Producer(connection.librdkafka() | {"linger.ms": "5"})
    orders = Orders(connection.namespace, seed=1)
    now_us = int(time.time() * 1e6)
    for number in range(events):
        record = payment_event(orders.order(number), now_us, partition=0)(now_us)
        producer.produce(
            qualified(connection.namespace, Topic.PAYMENTS_REQUESTED), record.value, record.key, partition=0
        )
        producer.poll(0)
    producer.flush(30)


def _serve(connection: Connection, service_time_s: float, events: int, folder: Path) -> ServiceRateRow:
    settings = {
        "BOOTSTRAP_SERVERS": connection.bootstrap_servers,
        "NAMESPACE": connection.namespace,
        "REPLICA": "payment-0",
        "SERVICE_TIME_S": str(service_time_s),
    }
    environ = os.environ | {f"TAILPACK_{name}": value for name, value in settings.items()}
    replica = Child("payment-0", "services.payment", environ, folder / "payment-0.log")
    watcher = Watcher(connection, Topic.PAYMENTS_SETTLED, latency_target_s=float("inf"))
    meter, metered_at = ResourceMeter(), 0.0
    deadline = time.monotonic() + DEADLINE_FACTOR * events * service_time_s + 30
    replica.start()
    try:
        while len(watcher.poll(0.1).finished) < events:
            if time.monotonic() > deadline or replica.exit_status is not None:
                raise TailpackError(f"the replica did not finish {events} events: {replica.last_words()}")
            if replica.pid and time.monotonic() >= metered_at + METER_EVERY_S:
                metered_at = time.monotonic()
                meter.sample({replica.name: replica.pid}, metered_at)
    finally:
        replica.terminate()
        replica.wait()
        watcher.close()
    state = watcher.state
    assert state.first_done_us is not None
    rate = (events - 1) / ((state.last_done_us - state.first_done_us) / 1e6)
    return ServiceRateRow(
        service_time_s=service_time_s,
        events=events,
        service_rate=round(rate, 2),
        share_of_ideal=round(rate * service_time_s, 4),
        cpu_per_event_s=round(meter.usages["payment-0"].cores / rate, 6),
        peak_mib=round(meter.peak_mib, 1),
    )
