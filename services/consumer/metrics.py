"""The metrics of a replica. Every metric has the labels `group` and `replica`. `vitals` supplies the values."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.core import HistogramMetricFamily, Metric

from contracts.metrics import MetricSpec, counter, gauge, histogram

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
EVENTS: Final = counter("tailpack_consumer_events_total", "events", "Handled events, including failed ones")
EVENTS_FAILED: Final = counter("tailpack_consumer_events_failed_total", "events", "Events that failed for good")
ATTEMPTS_RETRIED: Final = counter("tailpack_consumer_attempts_retried_total", "attempts", "Retried attempts")
BUSY_SECONDS: Final = counter("tailpack_consumer_busy_seconds_total", "seconds", "Time spent in handlers")
PARTITIONS: Final = gauge("tailpack_consumer_partitions", "partitions", "Partitions that the replica serves")
PARTITIONS_TAKEN: Final = counter("tailpack_consumer_partitions_taken_total", "partitions", "Partitions taken over")
HEALTHY: Final = gauge("tailpack_consumer_healthy", "", "1: the replica is healthy; 0: /healthz has the reasons")
PARTITION_AGE: Final = gauge(
    "tailpack_consumer_partition_lag_seconds", "seconds", "Age of the backlog's oldest event; 0: none", "partition"
)
POSITION: Final = gauge(
    "tailpack_consumer_partition_position", "", "First offset of a served partition that is not done", "partition"
)


class Buckets:
    """A histogram of one process. An observation costs a tenth of one in prometheus-client, which has locks."""

    def __init__(self, declared: MetricSpec, *bounds: float) -> None:
        self._declared = declared
        self._bounds = sorted(map(float, {*declared.bounds, *bounds}))
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value. A negative value, which two machines' clocks may cause, counts as 0."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value if value > 0 else 0

    def observe_since(self, begun_us: Sequence[int], now_us: int) -> None:
        """Count the time from each of `begun_us` until `now_us` (µs)."""
        bucket = bisect_left(self._bounds, (now_us - min(begun_us)) / 1e6)
        shortest_s = (now_us - max(begun_us)) / 1e6
        if shortest_s < 0 or bucket != bisect_left(self._bounds, shortest_s):
            for one_us in begun_us:
                self.observe((now_us - one_us) / 1e6)
        else:  # as for most batches, one bucket contains them all
            self._counts[bucket] += len(begun_us)
            self._sum += (now_us * len(begun_us) - sum(begun_us)) / 1e6

    def count_up_to(self, bound: float) -> int:
        """Return the number of values up to one of the bounds."""
        return sum(self._counts[: bisect_right(self._bounds, bound)])

    def collect(self, labels: Mapping[str, str]) -> Metric:
        """Return the metric with `labels`."""
        metric = HistogramMetricFamily(self._declared.name, self._declared.meaning, labels=[*labels])
        buckets = zip([*map(str, self._bounds), "+Inf"], accumulate(self._counts), strict=True)
        metric.add_metric([*labels.values()], [*buckets], self._sum)
        return metric
