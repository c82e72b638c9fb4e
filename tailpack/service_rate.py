"""μ_eff: one Payment replica against a standing backlog on a broker of its own."""

import os
import tempfile
import time
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from rich.console import Console

from bench.results import ServiceRateRow
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.topics import Topic, qualified
from contracts.validation import as_environment
from loadgen.orders import Orders, payment_event
from tailpack.errors import TailpackError
from tailpack.local.processes import Child
from tailpack.local.resources import ResourceMeter
from tailpack.local.topics import own_kafka
from tailpack.watch import Watcher

DEADLINE_FACTOR: Final = 3.0
METER_EVERY_S: Final = 1.0


def measure(service_time_s: float, events: int, console: Console) -> ServiceRateRow:
    """Serve `events` that lie ready and time them from the first done to the last.

    Raises TailpackError when they are not done within three times the ideal time, and half a minute.
    """
    with console.status(f"serving {events} events of {service_time_s} s"), own_kafka("rate", 1) as connection:
        _fill(connection, events)
        with tempfile.TemporaryDirectory() as folder:
            return _serve(connection, service_time_s, events, Path(folder))


def _fill(connection: Connection, events: int) -> None:
    producer = Producer(connection.librdkafka() | {"linger.ms": "5"})
    orders = Orders(connection.namespace, seed=1)
    topic, at_us = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED), now_us()
    for number in range(events):
        record = payment_event(orders.order(number), at_us, partition=0)(at_us)
        producer.produce(topic, record.value, record.key, partition=0)
        producer.poll(0)
    producer.flush(30)


def _serve(connection: Connection, service_time_s: float, events: int, folder: Path) -> ServiceRateRow:
    settings = {"TAILPACK_REPLICA": "payment-0", "TAILPACK_SERVICE_TIME_S": str(service_time_s)}
    environ = os.environ | as_environment(connection) | settings
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
