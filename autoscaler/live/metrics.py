"""Metrics of the autoscaler: declarations, and their values from journal entries."""

from collections.abc import Iterable
from typing import Any, Final

from prometheus_client import CollectorRegistry

from contracts.holds import Direction, Hold
from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged, TickRecord
from contracts.metrics import MetricSpec, counter, gauge, histogram

INFO: Final = gauge("tailpack_autoscaler_info", "", "Constant 1 with these labels", "group", "policy")
LEADING: Final = gauge(
    "tailpack_leading", "", "1: this autoscaler leads; 0: standby, or another member leads the group"
)
LAG: Final = gauge("tailpack_partition_lag_events", "events", "Events produced and not yet committed", "partition")
RATE: Final = gauge(
    "tailpack_partition_arrival_rate_events_per_second", "events/s", "Arrival rate (λ), last interval", "partition"
)
OWNER: Final = gauge("tailpack_partition_owner", "", "1: owns the partition, or will by plan", "partition", "replica")
SERVICE_RATE: Final = gauge("tailpack_service_rate_events_per_second", "events/s", "Learned typical service rate (μ)")
REPLICAS: Final = gauge("tailpack_replicas", "replicas", "Replicas by state: planned, requested or ready", "state")
EPOCH: Final = gauge("tailpack_plan_epoch", "", "Epoch of the plan in force")
DECISIONS: Final = counter("tailpack_decisions_total", "decisions", "Decisions of the policy", "action")
PREDICTED: Final = gauge(
    "tailpack_predicted_in_sla_ratio",
    "ratio",
    "Predicted share of events within the latency target for the current plan; NaN: the policy makes no prediction",
)
TICKS_WITHOUT_DATA: Final = counter("tailpack_ticks_without_data_total", "ticks", "Undecided ticks: data was missing")
PLANS: Final = counter(
    "tailpack_plans_total",
    "plans",
    "Plans written; `part`: others still start, `repair`: a death or failed start, `repeat`: not adopted, "
    "`count`: new count for KEDA or an HPA",
    "action",
)
PAUSED: Final = gauge("tailpack_paused", "", "1: an operator paused this, or `pin`, or ordered `act`", "direction")
STATUS: Final = gauge("tailpack_status", "", "Conditions of /status; 1: true, 0: false, NaN: unknown", "condition")
CHANGES: Final = counter("tailpack_replica_changes_total", "changes", "State changes of replicas", "change")
REBALANCE_TIME: Final = gauge("tailpack_rebalance_time_seconds", "seconds", "Rebalance time (t_r) that policies assume")
CONDITION: Final = gauge("tailpack_condition", "", "1: this component has a problem; /healthz has the reason", "type")
JOURNAL_BYTES: Final = counter("tailpack_journal_bytes_total", "bytes", "Uncompressed size of journal records")
JOURNAL_LOST: Final = counter("tailpack_journal_lost_total", "records", "Journal records that were lost")
PLAN_ADOPTION: Final = histogram(
    "tailpack_plan_adoption_seconds",
    "seconds",
    "Time from the write of a plan until every member has adopted it",
    bounds=(0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
)
TICK: Final = histogram(
    "tailpack_tick_seconds", "seconds", "Wall time of one tick", bounds=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1)
)
LAST_TICK: Final = gauge("tailpack_last_tick_timestamp_seconds", "seconds", "Unix time of the end of the last tick")

CONDITIONS: Final = (
    *("policy", "plans", "offsets", "transactions", "reports", "replicas", "launcher", "journal", "tick", "advance"),
    *("watch", "clock", "members", "holds", "scale-ups"),
)
"""Components that may have a problem. Each has a value from the start, so that a query sees the change to 1."""


class MetricSet:
    """The metrics of a process by their declarations, in their own registry."""

    def __init__(self, declared: Iterable[object]) -> None:
        self.registry = CollectorRegistry()
        self._metrics: dict[MetricSpec, Any] = {}
        self.add(declared)

    def add(self, declared: Iterable[object]) -> None:
        """Add declared metrics."""
        specs = [spec for spec in declared if isinstance(spec, MetricSpec)]
        self._metrics |= {spec: spec.create(self.registry) for spec in specs}

    def __getitem__(self, spec: MetricSpec) -> Any:
        """Return the metric of a declaration."""
        return self._metrics[spec]


class Metrics(MetricSet):
    """The autoscaler's metrics."""

    def __init__(self) -> None:
        super().__init__(globals().values())
        self._partition_values: dict[int, tuple[int, float, str | None]] = {}
        """Partition → its last values. Comparing is ten times cheaper than setting a metric."""
        self[PREDICTED].set(float("nan"))
        for component in CONDITIONS:
            self.set_condition(component, False)

    def set_condition(self, component: str, has_problem: bool) -> None:
        """Set whether a component has a problem."""
        self[CONDITION].labels(component).set(has_problem)

    def set_holds(self, *holds: Hold | None) -> None:
        """Set the pause or pin that applies, and the order about `act`."""
        found = {hold.direction for hold in holds if hold is not None}
        for direction in Direction:
            if direction is not Direction.NONE:
                self[PAUSED].labels(direction.value).set(direction in found)

    def count_entry(self, entry: JournalEntry) -> None:
        """Update the metrics from a journal entry."""
        match entry:
            case TickRecord():
                self._tick(entry)
            case PlanWritten():
                self[PLANS].labels(entry.action).inc()
                self[EPOCH].set(entry.epoch)
            case ReplicaChanged():
                self[CHANGES].labels(entry.change.value).inc()

    def _remove_partitions(self, gone: Iterable[int]) -> None:
        for partition in gone:
            _, _, owner = self._partition_values.pop(partition)
            self[LAG].remove(str(partition))
            self[RATE].remove(str(partition))
            if owner is not None:
                self[OWNER].remove(str(partition), owner)

    def _tick(self, tick: TickRecord) -> None:
        self[DECISIONS].labels(tick.action).inc()
        if tick.missing is not None:
            self[TICKS_WITHOUT_DATA].inc()
        for state in tick.partitions:
            before = self._partition_values.get(state.partition, (None, None, None))
            if before != (now := (state.lag, state.arrival_rate, state.owner)):
                self._partition_values[state.partition] = now
                name = str(state.partition)
                self[LAG].labels(name).set(state.lag)
                self[RATE].labels(name).set(state.arrival_rate)
                if before[2] not in (None, state.owner):
                    self[OWNER].remove(name, before[2])
                if state.owner not in (None, before[2]):
                    self[OWNER].labels(name, state.owner).set(1)
        if tick.missing is None and len(self._partition_values) > len(tick.partitions):
            self._remove_partitions(self._partition_values.keys() - {state.partition for state in tick.partitions})
        self[SERVICE_RATE].set(tick.service_rate)
        self[PREDICTED].set(tick.alternatives[0].in_sla if tick.alternatives else float("nan"))
        for phase in ("requested", "ready", "planned"):
            self[REPLICAS].labels(phase).set(getattr(tick, f"{phase}_replicas"))
        self[EPOCH].set(tick.epoch)
