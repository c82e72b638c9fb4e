"""The load generator's metrics."""

from collections.abc import Callable, Iterator

from prometheus_client.core import Metric

from contracts.metrics import counter, gauge
from loadgen.drivers.sender import Entry
from loadgen.pacing import Pacer
from loadgen.result import lateness_percentile_us

RECENT = 1000
"""Events whose lateness is looked at."""

SCHEDULED = gauge("tailpack_generator_scheduled", "events", "Events of the whole schedule")
SENT = counter("tailpack_generator_sent_total", "events", "Events handed to the Kafka client")
ACKNOWLEDGED = counter("tailpack_generator_acknowledged_total", "events", "Events that the brokers have confirmed")
FAILED = counter("tailpack_generator_failed_total", "events", "Events that the Kafka client gave up")
LATENESS = gauge(
    "tailpack_generator_lateness_p99_seconds", "seconds", f"Send time − intended time, p99 of the last {RECENT} events"
)
LIMIT = gauge("tailpack_generator_lateness_limit_seconds", "seconds", "A run whose p99 is above is invalid: 5 % of W")


class GeneratorMetrics:
    """A collector of prometheus-client. pacer: None before the load begins."""

    def __init__(self, scheduled: int, sender: Entry, pacer: Callable[[], Pacer | None], limit_us: int) -> None:
        self._scheduled = scheduled
        self._sender = sender
        self._pacer = pacer
        self._limit_us = limit_us

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of this moment."""
        pacer = self._pacer()
        late_us = None if pacer is None else lateness_percentile_us(pacer.lateness_us[-RECENT:], 0.99)
        values = {
            SCHEDULED: self._scheduled,
            SENT: self._sender.produced,
            ACKNOWLEDGED: self._sender.acknowledged,
            FAILED: self._sender.failed,
            LATENESS: (late_us or 0) / 1e6,
            LIMIT: self._limit_us / 1e6,
        }
        for declared, value in values.items():
            yield declared.of(value)
