"""Prometheus metrics: every name, type and unit."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged, TickRecord


class Metrics:
    """The autoscaler's metrics in a registry of their own. λ, μ: of the last decision interval, as learned."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._lag = self._gauge("partition_lag_events", "Events produced and not committed", ["partition"])
        self._rate = self._gauge("partition_arrival_rate_events_per_second", "Events produced a second", ["partition"])
        self._service_rate = self._gauge("service_rate_events_per_second", "Events/s of one busy replica")
        self._replicas = self._gauge("replicas", "Payment replicas: requested, ready or planned", ["state"])
        self._epoch = self._gauge("plan_epoch", "Epoch of the plan in force")
        self._decisions = self._counter("decisions_total", "Decisions taken: up, down, reassign or hold", ["action"])
        self._blind = self._counter("holds_for_want_of_data_total", "Ticks at which a number was unknown")
        self._plans = self._counter("plans_total", "Plans written; `repair`: one that no policy asked for", ["action"])
        self._changes = self._counter("replica_changes_total", "Changes in the life of replicas", ["change"])
        self.rebalance_time = self._gauge("rebalance_time_seconds", "Rebalance time (t_r) that the policy plans for")
        self.tick_seconds = Histogram(
            "tailpack_tick_seconds",
            "Wall time of one tick",
            buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1),
            registry=self.registry,
        )
        self.last_tick = self._gauge("last_tick_timestamp_seconds", "End of the last tick, seconds since the epoch")

    def note(self, entry: JournalEntry) -> None:
        """Count what the journal records."""
        match entry:
            case TickRecord():
                self._tick(entry)
            case PlanWritten():
                self._plans.labels(entry.action).inc()
                self._epoch.set(entry.epoch)
            case ReplicaChanged():
                self._changes.labels(entry.change.value).inc()

    def _tick(self, tick: TickRecord) -> None:
        self._decisions.labels(tick.action).inc()
        if tick.missing is not None:
            self._blind.inc()
        for seen in tick.partitions:
            self._lag.labels(str(seen.partition)).set(seen.lag)
            self._rate.labels(str(seen.partition)).set(seen.arrival_rate)
        self._service_rate.set(tick.service_rate)
        self._replicas.labels("requested").set(tick.requested_replicas)
        self._replicas.labels("ready").set(tick.ready_replicas)
        self._replicas.labels("planned").set(tick.planned_replicas)
        self._epoch.set(tick.epoch)

    def _gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        return Gauge(f"tailpack_{name}", text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(f"tailpack_{name}", text, labels, registry=self.registry)
