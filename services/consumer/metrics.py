"""The metrics of a replica. Every metric has the labels `group` and `replica`. `vitals` supplies the values."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import accumulate
from math import inf
from typing import Final

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from contracts.metrics import counter, gauge, histogram
from contracts.settings import Target

LABELS: Final = ("group", "replica")

LATENCY: Final = histogram(
    "tailpack_consumer_latency_seconds",
    "seconds",
    "Time from an event's intended send time (custom handlers: its timestamp) until it was done. "
    "One bucket bound is the latency target. An event that is served twice counts twice",
    bounds=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
IN_SLA: Final = counter("tailpack_consumer_in_sla_total", "events", "Events done within the latency target")
TARGET: Final = gauge("tailpack_consumer_latency_target_seconds", "seconds", "Latency target (W)")
BUDGET: Final = gauge("tailpack_consumer_sla_budget_ratio", "ratio", "Share of events that may be late (1 − q)")
PAUSE: Final = histogram(
    "tailpack_consumer_handover_pause_seconds",
    "seconds",
    "For each partition taken over from another replica: time from that replica's stop until this one can start",
    bounds=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
CLOCK_OFFSET: Final = gauge("tailpack_consumer_clock_offset_seconds", "seconds", "Own clock minus the last owner's")
EVENTS: Final = counter("tailpack_consumer_events_total", "events", "Handled events, including failed ones")
EVENTS_FAILED: Final = counter("tailpack_consumer_events_failed_total", "events", "Events that failed for good")
ATTEMPTS_RETRIED: Final = counter("tailpack_consumer_attempts_retried_total", "attempts", "Retried attempts")
BUSY_SECONDS: Final = counter("tailpack_consumer_busy_seconds_total", "seconds", "Time spent in handlers")
PARTITIONS: Final = gauge("tailpack_consumer_partitions", "partitions", "Partitions that the replica serves")
PARTITIONS_TAKEN: Final = counter("tailpack_consumer_partitions_taken_total", "partitions", "Partitions taken over")
HEALTHY: Final = gauge("tailpack_consumer_healthy", "", "1: the replica is healthy; 0: /healthz has the reasons")
REPORTS_LOST: Final = counter(
    "tailpack_consumer_reports_lost_total", "reports", "Progress reports that could not be written"
)
PARTITION_AGE: Final = gauge(
    "tailpack_consumer_partition_lag_seconds", "seconds", "Age of the backlog's oldest event; 0: none", "partition"
)
POSITION: Final = gauge(
    "tailpack_consumer_partition_position", "", "First offset of a served partition that is not done", "partition"
)


class Latencies:
    """Histogram of event latencies. Its own counts cost an event less than those of prometheus-client."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._bounds_s = sorted({*LATENCY.bounds, target.latency_target_s})
        self._counts = [0] * (len(self._bounds_s) + 1)
        self._sum_s = 0.0

    def observe(self, *latencies_s: float) -> None:
        """Count one event for each latency."""
        bounds_s, counts = self._bounds_s, self._counts
        for latency_s in latencies_s:
            counts[bisect_left(bounds_s, latency_s)] += 1
            if latency_s > 0:  # negative if the clocks of two machines differ
                self._sum_s += latency_s

    @property
    def events_in_time(self) -> int:
        """Number of events done within the latency target."""
        return sum(self._counts[: bisect_right(self._bounds_s, self.target.latency_target_s)])

    def collect(self, labels: Mapping[str, str]) -> Metric:
        """Return the histogram as a metric with `labels`."""
        metric = HistogramMetricFamily(LATENCY.name, LATENCY.meaning, labels=[*labels])
        bounds = [floatToGoString(bound_s) for bound_s in (*self._bounds_s, inf)]
        buckets = [*zip(bounds, accumulate(self._counts), strict=True)]
        metric.add_metric([*labels.values()], buckets, self._sum_s)
        return metric
