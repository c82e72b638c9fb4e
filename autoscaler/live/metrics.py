"""The autoscaler's metrics: what each is, and how the journal's entries become them."""

from collections.abc import Iterable
from typing import Any, Final

from prometheus_client import CollectorRegistry

from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged, TickRecord
from contracts.metrics import MetricSpec, counter, gauge, histogram
from contracts.settings import Target

INFO: Final = gauge(
    "tailpack_autoscaler_info", "", "1; its labels are the scaled group and the policy", "group", "policy"
)
LEADING: Final = gauge("tailpack_leading", "", "1: this autoscaler leads; 0: it stands by")
TARGET: Final = gauge("tailpack_latency_target_seconds", "seconds", "Latency target (W)")
BUDGET: Final = gauge("tailpack_sla_budget_ratio", "ratio", "Share of events that may be late: 1 − q")
LAG: Final = gauge("tailpack_partition_lag_events", "events", "Events produced and not committed", "partition")
RATE: Final = gauge(
    "tailpack_partition_arrival_rate_events_per_second",
    "events/s",
    "Arrival rate (λ) in the last decision interval",
    "partition",
)
OWNER: Final = gauge(
    "tailpack_partition_owner", "", "1: the replica owns the partition now or by plan", "partition", "replica"
)
SERVICE_RATE: Final = gauge(
    "tailpack_service_rate_events_per_second", "events/s", "Learned service rate (μ) of one replica"
)
REPLICAS: Final = gauge("tailpack_replicas", "replicas", "Replicas that are planned, requested or ready", "state")
EPOCH: Final = gauge("tailpack_plan_epoch", "", "Epoch of the plan in force")
DECISIONS: Final = counter("tailpack_decisions_total", "decisions", "Decisions: up, down, reassign or hold", "action")
PREDICTED: Final = gauge(
    "tailpack_predicted_in_sla_ratio",
    "ratio",
    "Share of the events looked at that the last decision expects in time; NaN: its policy does not predict",
)
BLIND: Final = counter(
    "tailpack_ticks_without_data_total", "ticks", "Ticks without a decision because an observation was missing"
)
PLANS: Final = counter(
    "tailpack_plans_total",
    "plans",
    "Plans written; `repair`: no policy asked for it, `repeat`: not taken, `count`: others bring replicas",
    "action",
)
CHANGES: Final = counter("tailpack_replica_changes_total", "changes", "Changes in the life of replicas", "change")
REBALANCE_TIME: Final = gauge("tailpack_rebalance_time_seconds", "seconds", "Rebalance time (t_r) that policies assume")
TROUBLE: Final = gauge("tailpack_condition", "", "1 while the component has a problem; /healthz has the reason", "what")
JOURNAL_BYTES: Final = counter("tailpack_journal_bytes_total", "bytes", "Size of the journal's records, uncompressed")
JOURNAL_LOST: Final = counter(
    "tailpack_journal_lost_total", "records", "Records that could not be written to the journal"
)
PLAN_ADOPTION: Final = histogram(
    "tailpack_plan_adoption_seconds",
    "seconds",
    "Time from the write of a plan until every member uses it",
    bounds=(0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
)
TICK: Final = histogram(
    "tailpack_tick_seconds", "seconds", "Wall time of one tick", bounds=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1)
)
LAST_TICK: Final = gauge(
    "tailpack_last_tick_timestamp_seconds", "seconds", "End of the last tick, in seconds since the epoch"
)

TROUBLES: Final = (
    *("policy", "plans", "offsets", "reports", "replicas", "launcher", "journal", "tick", "advance", "watch", "clock"),
)
"""Components that may have a problem; each is shown from the start, so that a query sees the change to 1."""


class Shown:
    """What a process shows: each metric by its declaration, in a registry of their own."""

    def __init__(self, declared: Iterable[object]) -> None:
        self.registry = CollectorRegistry()
        every = [one for one in declared if isinstance(one, MetricSpec)]
        self._made = {one: one.create(self.registry) for one in every}

    def __getitem__(self, declared: MetricSpec) -> Any:
        """Return the metric, to be counted, set or observed."""
        return self._made[declared]


class Metrics(Shown):
    """The autoscaler's metrics."""

    def __init__(self) -> None:
        super().__init__(globals().values())
        self._known: dict[int, tuple[int, float, str | None]] = {}
        """Partition → its values: to set one again costs ten times as much as to compare it."""
        self[PREDICTED].set(float("nan"))
        for what in TROUBLES:
            self.flag(what, False)

    def about(self, group: str, policy: str, target: Target) -> None:
        """Say what is scaled, by whom and for what."""
        self[INFO].labels(group, policy).set(1)
        self[TARGET].set(target.latency_target_s)
        self[BUDGET].set(1 - target.percentile)

    def flag(self, what: str, is_in_trouble: bool) -> None:
        """Show whether something is in trouble."""
        self[TROUBLE].labels(what).set(is_in_trouble)

    def note(self, entry: JournalEntry) -> None:
        """Count what the journal records."""
        match entry:
            case TickRecord():
                self._tick(entry)
            case PlanWritten():
                self[PLANS].labels(entry.action).inc()
                self[EPOCH].set(entry.epoch)
            case ReplicaChanged():
                self[CHANGES].labels(entry.change.value).inc()

    def _tick(self, tick: TickRecord) -> None:
        self[DECISIONS].labels(tick.action).inc()
        if tick.missing is not None:
            self[BLIND].inc()
        for seen in tick.partitions:
            before = self._known.get(seen.partition, (None, None, None))
            if before != (now := (seen.lag, seen.arrival_rate, seen.owner)):
                self._known[seen.partition] = now
                name = str(seen.partition)
                self[LAG].labels(name).set(seen.lag)
                self[RATE].labels(name).set(seen.arrival_rate)
                if before[2] not in (None, seen.owner):
                    self[OWNER].remove(name, before[2])
                if seen.owner not in (None, before[2]):
                    self[OWNER].labels(name, seen.owner).set(1)
        self[SERVICE_RATE].set(tick.service_rate)
        self[PREDICTED].set(tick.alternatives[0].in_sla if tick.alternatives else float("nan"))
        for state in ("requested", "ready", "planned"):
            self[REPLICAS].labels(state).set(getattr(tick, f"{state}_replicas"))
        self[EPOCH].set(tick.epoch)
