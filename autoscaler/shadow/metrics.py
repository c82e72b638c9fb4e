"""The shadow's metrics. of: `group`, as it is; `would_be`, as it would have been."""

from prometheus_client import CollectorRegistry

from autoscaler.shadow.would_be import WouldBeGroup
from contracts.metrics import counter, gauge

REPLICAS = gauge(
    "tailpack_shadow_replicas", "replicas", "Members of the group, and replicas there would have been", "of"
)
LAG = gauge("tailpack_shadow_lag_seconds", "seconds", "Age of the oldest event that waits", "of")
MINUTES = gauge(
    "tailpack_shadow_replica_minutes", "replica-minutes", "Replica-minutes since the comparison began", "of"
)
LATE = gauge("tailpack_shadow_late_seconds", "seconds", "For how long an event waited beyond the target", "of")
WATCHED = gauge("tailpack_shadow_watched_seconds", "seconds", "How long the comparison lasts")
SERVICE_RATE = gauge(
    "tailpack_shadow_service_rate_events_per_second", "events/s", "Events/s of a busy member, as learned or told"
)
TROUBLE = gauge("tailpack_shadow_trouble", "", "1 while it is in trouble; /healthz says why", "what")
DECISIONS = counter("tailpack_shadow_decisions_total", "decisions", "Decisions that were not carried out", "action")


class ShadowMetrics:
    """In a registry of their own."""

    def __init__(self) -> None:
        made = self.registry = CollectorRegistry()
        self._replicas, self._lag = REPLICAS.gauge(made), LAG.gauge(made)
        self._minutes, self._late = MINUTES.gauge(made), LATE.gauge(made)
        self._watched, self._rate = WATCHED.gauge(made), SERVICE_RATE.gauge(made)
        self._troubles = TROUBLE.gauge(made)
        self.decisions = DECISIONS.counter(made)

    def flag(self, what: str, is_in_trouble: bool) -> None:
        """Show whether something is in trouble."""
        self._troubles.labels(what).set(is_in_trouble)

    def take(self, group: WouldBeGroup) -> None:
        """Show what is known now."""
        self._watched.set(group.watched_s)
        self._rate.set(group.status().service_rate)
        for of, account in (("group", group.actual), ("would_be", group.would_be)):
            self._replicas.labels(of).set(account.replicas)
            self._lag.labels(of).set(account.lag_s)
            self._minutes.labels(of).set(account.replica_s / 60)
            self._late.labels(of).set(account.late_s)
