"""The metrics of a replica; every one has the labels `group` and `replica`. Where values come from: `vitals`."""

from typing import Final

from contracts.metrics import counter, gauge, histogram
from contracts.settings import Target

LABELS: Final = ("group", "replica")

LATENCY: Final = histogram(
    "tailpack_consumer_latency_seconds",
    "seconds",
    "From the moment an event was intended to be sent (own handlers: from its timestamp) until it was done; "
    "one of the bounds is W. Repeated events count again",
    bounds=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
IN_SLA: Final = counter("tailpack_consumer_in_sla_total", "events", "Events of the histogram that were done within W")
TARGET: Final = gauge("tailpack_consumer_latency_target_seconds", "seconds", "Latency target (W)")
BUDGET: Final = gauge("tailpack_consumer_sla_budget_ratio", "ratio", "Share of events that may be late: 1 − q")
PAUSE: Final = histogram(
    "tailpack_consumer_handover_pause_seconds",
    "seconds",
    "Of each partition taken over from another replica: from the moment that one stopped until this one could start",
    bounds=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
EVENTS: Final = counter("tailpack_consumer_events_total", "events", "Events that are done, failed ones included")
FAILED: Final = counter("tailpack_consumer_events_failed_total", "events", "Events that failed in their last attempt")
RETRIED: Final = counter(
    "tailpack_consumer_attempts_retried_total", "attempts", "Attempts that failed and were followed by another"
)
BUSY: Final = counter("tailpack_consumer_busy_seconds_total", "seconds", "Time spent handling events")
PARTITIONS: Final = gauge("tailpack_consumer_partitions", "partitions", "Partitions that are served")
TAKEN: Final = counter("tailpack_consumer_partitions_taken_total", "partitions", "Partitions taken over")
WELL: Final = gauge("tailpack_consumer_well", "", "1: the replica is healthy; 0: /healthz has the reasons")
PARTITION_AGE: Final = gauge(
    "tailpack_consumer_partition_lag_seconds",
    "seconds",
    "Age of the oldest event of a partition served here that waits; 0: none does",
    "partition",
)
POSITION: Final = gauge("tailpack_consumer_partition_position", "", "Next offset to serve of a partition", "partition")


class Latencies:
    """Latencies of events, measured against a target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.histogram = LATENCY.kept(None, target.latency_target_s)
        self.in_time = 0
        """Events that were done within W."""

    def observe(self, latency_s: float) -> None:
        """Count one event; clocks of two machines may make it look as if it had been done before it was sent."""
        self.histogram.observe(max(0.0, latency_s))
        self.in_time += latency_s <= self.target.latency_target_s
