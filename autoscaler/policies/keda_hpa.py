"""What most users of Kafka on Kubernetes run: KEDA's Kafka scaler feeds lag to a HorizontalPodAutoscaler.

Written after KEDA's documentation ("Apache Kafka" scaler, "Scaling Deployments") and checked against
pkg/scalers/kafka_scaler.go of KEDA 2. Left out, because a group here always has a replica: activation from zero and
the cool-down before going to zero. KEDA answers each sync of the HPA with offsets read anew; its own polling interval
concerns activation alone.
"""

from dataclasses import dataclass
from functools import partial

from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.hpa import HorizontalPodAutoscaler, HpaSettings
from autoscaler.policies.planning import change, counted_hold, counted_plan, number
from autoscaler.policies.scalings import Scalings
from autoscaler.policies.settings import PolicySettings
from contracts.settings import Rule, Values, setting


@dataclass(frozen=True, kw_only=True)
class KedaHpaSettings(HpaSettings):
    """Trigger options of the Kafka scaler, beside the fields of the HPA. Raises ValueError naming every mistake."""

    lag_threshold: int = setting(0, "events", least=0)
    """lagThreshold, events of lag for each replica. 0: ⌊μ·W⌋ with μ as it is at the first decision, for so much a
    replica serves within the target; what a careful user computes once. KEDA's own default is 5."""
    allow_idle_consumers: bool = setting(False)
    """allowIdleConsumers: lag may ask for more replicas than there are partitions."""
    limit_to_partitions_with_lag: bool = setting(False)
    """limitToPartitionsWithLag: no more replicas than partitions that have lag. Not with allow_idle_consumers."""
    ensure_even_distribution_of_partitions: bool = setting(False)
    """ensureEvenDistributionOfPartitions: up to the next divisor of the number of partitions."""
    exclude_persistent_lag: bool = setting(False)
    """excludePersistentLag: a partition whose committed offset is where it was at the sync before counts as no lag."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return the HPA's rules and: what KEDA refuses beside limit_to_partitions_with_lag."""
        exclusive = ("allow_idle_consumers", "ensure_even_distribution_of_partitions")
        return (*super().rules(), *((name, partial(_not_beside_lag_limit, name)) for name in exclusive))


def _not_beside_lag_limit(name: str, values: Values) -> str | None:
    refused = values[name] and values["limit_to_partitions_with_lag"]
    return "KEDA refuses it beside limit_to_partitions_with_lag" if refused else None


class KafkaScaler:
    """From the lag of partitions to the one figure that the HPA sees. It knows what was committed between two syncs."""

    def __init__(self, options: KedaHpaSettings) -> None:
        self.options = options
        self._last: GroupObservation | None = None
        self._committed: dict[int, float] = {}
        self._reported: frozenset[int] = frozenset()

    def observe(self, observation: GroupObservation) -> None:
        """Take in one tick: what arrived and is not in the lag has been committed."""
        if self._last is not None:
            passed_s = observation.at_s - self._last.at_s
            lags = {load.partition: load.lag for load in self._last.partitions}
            for load in observation.partitions:
                served = load.arrival_rate * passed_s - (load.lag - lags.get(load.partition, load.lag))
                self._committed[load.partition] = self._committed.get(load.partition, 0.0) + served
        self._last = observation

    def report(self, observation: GroupObservation, threshold: int) -> int:
        """Return the lag that the HPA is told, events; what was committed is counted anew from here."""
        options = self.options
        lags = [0 if self._persists(load.partition) else load.lag for load in observation.partitions]
        self._reported = frozenset(load.partition for load in observation.partitions)
        self._committed.clear()
        total, partitions = sum(lags), len(lags)
        if options.ensure_even_distribution_of_partitions:
            total = threshold * _next_divisor(partitions, at_least=total / threshold)
        most = sum(lag > 0 for lag in lags) if options.limit_to_partitions_with_lag else partitions
        capped = not options.allow_idle_consumers or options.ensure_even_distribution_of_partitions
        # KEDA divides integers: 5.9 thresholds are not more than 5 partitions, and the HPA asks for 6 replicas.
        return most * threshold if capped and total // threshold > most else total

    def _persists(self, partition: int) -> bool:
        """Tell whether the partition's lag is left out: nothing was committed since the last sync that saw it."""
        if not self.options.exclude_persistent_lag or partition not in self._reported:
            return False
        return self._committed.get(partition, 0.0) < 0.5  # events; rates times seconds are whole but for rounding


class KedaHpa:
    """Lag of the group over the lag for each replica, looked at every 15 s. States a count only."""

    name = "keda-hpa"

    def __init__(self, settings: PolicySettings, options: KedaHpaSettings | None = None) -> None:
        self.settings = settings
        self.options = options or KedaHpaSettings()
        self._threshold = self.options.lag_threshold
        self._scaler = KafkaScaler(self.options)
        self._hpa = HorizontalPodAutoscaler(self.options)
        self._scalings = Scalings(max(self.options.scale_up_period_s, self.options.scale_down_period_s))

    def decide(self, observation: GroupObservation) -> Decision:
        """Sync when it is time; otherwise hold."""
        self._scalings.observe(observation)
        self._scaler.observe(observation)
        prefix, now = self.settings.replica_prefix, observation.requested_replicas
        if not self._threshold:
            self._threshold = max(1, int(observation.service_rate * self.settings.latency_target_s + 1e-9))
        if not now:
            plan = counted_plan(observation, self.options.min_replicas, prefix)
            return change(observation, plan, "no replica is requested")
        wait_s = self._hpa.until_sync_s(observation.at_s)
        if wait_s:
            return counted_hold(observation, prefix, f"the next sync is in {number(wait_s)} s: hold {now}")
        lag = self._scaler.report(observation, self._threshold)
        wanted = self._hpa.sync(observation.at_s, now, lag, self._threshold, self._scalings)
        why = f"lag of {lag} events at {self._threshold} for each replica: {wanted.why}"
        if wanted.count == now:
            return counted_hold(observation, prefix, f"{why}: hold {now}")
        return change(observation, counted_plan(observation, wanted.count, prefix), why)


def _next_divisor(number_of_partitions: int, *, at_least: float) -> int:
    """Return the least divisor that is large enough, else the number itself."""
    divisors = (one for one in range(1, number_of_partitions + 1) if number_of_partitions % one == 0)
    return next((one for one in divisors if one >= at_least), number_of_partitions)
