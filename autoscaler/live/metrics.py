"""Prometheus metrics: every name, type and unit. Dashboards import the names from here."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged, TickRecord

LAG: Final = "tailpack_partition_lag_events"
"""Gauge {partition}: events produced and not committed."""
ARRIVAL_RATE: Final = "tailpack_partition_arrival_rate_events_per_second"
"""Gauge {partition}: λ over the last decision interval."""
SERVICE_RATE: Final = "tailpack_service_rate_events_per_second"
"""Gauge: μ of one replica, as learned."""
REPLICAS: Final = "tailpack_replicas"
"""Gauge {state = requested | ready | planned}: number of replicas."""
EPOCH: Final = "tailpack_plan_epoch"
"""Gauge: epoch of the plan in force."""
DECISIONS: Final = "tailpack_decisions_total"
"""Counter {action = up | down | reassign | hold}."""
HOLDS_BLIND: Final = "tailpack_holds_for_want_of_data_total"
"""Counter: ticks at which a number was unknown."""
PLANS: Final = "tailpack_plans_total"
"""Counter {action}: plans committed to the plan topic; `repair` is one that no policy asked for."""
REPLICA_CHANGES: Final = "tailpack_replica_changes_total"
"""Counter {change}: see contracts.journal.ReplicaChange."""
REBALANCE_TIME: Final = "tailpack_rebalance_time_seconds"
"""Gauge: t_r that the policy plans for."""
TICK_SECONDS: Final = "tailpack_tick_seconds"
"""Histogram: wall time of one tick."""
LAST_TICK: Final = "tailpack_last_tick_timestamp_seconds"
"""Gauge: when the last tick ended, seconds since the epoch."""
REPORTS_REJECTED: Final = "tailpack_progress_rejected_total"
"""Counter: records on the progress topic that were no report."""
_TICK_BUCKETS_S: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1)


class Metrics:
    """The autoscaler's metrics in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._lag = Gauge(LAG, "Events produced and not committed", ["partition"], registry=self.registry)
        self._rate = Gauge(ARRIVAL_RATE, "Events produced per second", ["partition"], registry=self.registry)
        self._service_rate = Gauge(SERVICE_RATE, "Events/s of one busy replica", registry=self.registry)
        self._replicas = Gauge(REPLICAS, "Payment replicas", ["state"], registry=self.registry)
        self._epoch = Gauge(EPOCH, "Epoch of the plan in force", registry=self.registry)
        self._decisions = Counter(DECISIONS, "Decisions taken", ["action"], registry=self.registry)
        self._blind = Counter(HOLDS_BLIND, "Ticks without an observation", registry=self.registry)
        self._plans = Counter(PLANS, "Plans written", ["action"], registry=self.registry)
        self._changes = Counter(REPLICA_CHANGES, "Changes in the life of replicas", ["change"], registry=self.registry)
        self.rebalance_time = Gauge(REBALANCE_TIME, "Rebalance time planned for", registry=self.registry)
        self.tick_seconds = Histogram(
            TICK_SECONDS,
            "Wall time of one tick",
            buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1),
            registry=self.registry,
        )
        self.last_tick = Gauge(LAST_TICK, "End of the last tick", registry=self.registry)
        self.reports_rejected = Counter(REPORTS_REJECTED, "Unreadable progress reports", registry=self.registry)

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
