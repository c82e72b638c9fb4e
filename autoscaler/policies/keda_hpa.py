"""Model of KEDA's Kafka scaler, which reports lag to a HorizontalPodAutoscaler (HPA).

KEDA: after its documentation ("Apache Kafka" scaler, "Scaling Deployments"), checked against
pkg/scalers/kafka_scaler.go of KEDA 2. Activation from zero and the cool-down before zero are left out, because a group
here always has a replica. KEDA reads the offsets again for each sync of the HPA. Its polling interval only concerns
activation.
HPA, with one external metric of type AverageValue: after its documentation ("Horizontal Pod Autoscaling"), checked
against `horizontal.go` and `replica_calculator.go` in pkg/controller/podautoscaler of Kubernetes 1.33. That
release can set the tolerance of each HPA. The defaults of an HPA are in pkg/apis/autoscaling/v2.
"""

import math
from dataclasses import dataclass

from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.planning import SAME_S, ScalingHistory, WantedCounts, number, scale_to
from autoscaler.policies.settings import PolicySettings
from contracts.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class KedaHpaSettings(Settings):
    """Trigger options of the Kafka scaler, fields of an HPA and flags of its controller, at their defaults.

    In place of spec.minReplicas and spec.maxReplicas, the limits of every policy apply (min_replicas, max_replicas).
    """

    lag_threshold: int = setting(0, "events", least=0)
    """`lagThreshold`, lag for each replica; 0: ⌊μ·W⌋ at the first decision. KEDA's default is 5."""
    ensure_even_distribution_of_partitions: bool = setting(False)
    """`ensureEvenDistributionOfPartitions`: use the next divisor of the number of partitions."""
    sync_s: float = setting(15.0, "s", least=0)
    """`--horizontal-pod-autoscaler-sync-period`."""
    tolerance: float = setting(0.1, least=0)
    """`--horizontal-pod-autoscaler-tolerance`: no change within 1 ± tolerance, so from 10 replicas on none by a single
    replica."""
    scale_up_stabilisation_s: float = setting(0.0, "s", least=0)
    """`behavior.scaleUp.stabilizationWindowSeconds`."""
    scale_down_stabilisation_s: float = setting(300.0, "s", least=0)
    """`behavior.scaleDown.stabilizationWindowSeconds`."""
    scale_up_percent: float = setting(100.0, "%", least=0)
    """`behavior.scaleUp.policies`: most percent of the count added in scale_up_period_s; 0: no such policy."""
    scale_up_pods: int = setting(4, "replicas", least=0)
    """Most replicas added in that time. The greater limit applies. 0: no such policy."""
    scale_up_period_s: float = setting(15.0, "s", least=0)
    """Period of both limits."""
    scale_down_percent: float = setting(100.0, "%", least=0)
    """`behavior.scaleDown.policies`: most percent of the count removed in scale_down_period_s; 0: no such policy."""
    scale_down_pods: int = setting(0, "replicas", least=0)
    """Most replicas removed in that time. The greater limit applies. 0: no such policy."""
    scale_down_period_s: float = setting(15.0, "s", least=0)
    """Period of both limits."""


class KedaHpa:
    """Divides lag by a threshold, as KEDA with a HorizontalPodAutoscaler (HPA); decides a count only."""

    name = "keda-hpa"

    def __init__(self, settings: PolicySettings, options: KedaHpaSettings | None = None) -> None:
        self.settings = settings
        self.options = options or KedaHpaSettings()
        self._threshold = self.options.lag_threshold
        self._next_s = -math.inf
        self._up = WantedCounts(self.options.scale_up_stabilisation_s)
        self._down = WantedCounts(self.options.scale_down_stabilisation_s)
        self._scalings = ScalingHistory(max(self.options.scale_up_period_s, self.options.scale_down_period_s))

    def decide(self, observation: GroupObservation) -> Decision:
        """Compute the count as the HPA does if its next sync is due."""
        self._scalings.observe(observation)
        if not self._threshold:
            self._threshold = max(1, int(observation.service_rate * self.settings.latency_target_s + 1e-9))
        wait_s, wanted = self._next_s - observation.at_s, observation.requested_replicas
        if not wanted:
            wanted, why = 1, "no replica is requested"
        elif wait_s > SAME_S:
            why = f"the next sync is in {number(wait_s)} s"
        else:
            wanted, why = self._sync(observation)
        return scale_to(observation, wanted, self.settings.replica_prefix, why)

    def _reported(self, observation: GroupObservation) -> int:
        """Return the lag that KEDA reports to the HPA, events: at most one threshold for each partition."""
        partitions, threshold = len(observation.partitions), self._threshold
        total = sum(load.lag for load in observation.partitions)
        if self.options.ensure_even_distribution_of_partitions:
            divisors = (count for count in range(1, partitions + 1) if partitions % count == 0)
            total = threshold * next((count for count in divisors if count >= total / threshold), partitions)
        # KEDA divides integers: 5.9 thresholds are not more than 5 partitions, so the HPA requests 6 replicas.
        return partitions * threshold if total // threshold > partitions else total

    def _sync(self, observation: GroupObservation) -> tuple[int, str]:
        """Return the wanted count, at least 1, and why.

        The desired count is ⌈lag/threshold⌉, i.e. ⌈count × (lag/count)/threshold⌉, unless within the tolerance. Then
        the stabilisation windows apply, over the counts desired at past syncs and the count at the first one. Then the
        policies that limit the rate of change apply, over the observed changes.
        """
        at_s, count, lag = observation.at_s, observation.requested_replicas, self._reported(observation)
        following_s = self._next_s + self.options.sync_s
        self._next_s = following_s if following_s > at_s else at_s + self.options.sync_s
        ratio, tolerance = lag / (count * self._threshold), self.options.tolerance
        inside = 1 - tolerance <= ratio <= 1 + tolerance
        desired = count if inside else max(1, math.ceil(lag / self._threshold))
        why = [
            f"lag of {lag} events at {self._threshold} for each replica: {ratio:.2f} of the target for {count}"
            + (", within the tolerance" if inside else "")
        ]
        (fewest, _), (_, most) = self._up.note(observation, desired), self._down.note(observation, desired)
        stabilised = min(max(count, fewest), most)  # nearest count that both windows allow
        if stabilised != desired:
            why.append(f"{desired} desired, but {stabilised} by the stabilisation window")
        limited = self._limit_rate(at_s, count, stabilised)
        if limited != stabilised:
            why.append(f"limited to {limited} by the scaling policies")
        return limited, "; ".join(why)

    def _limit_rate(self, at_s: float, count: int, wanted: int) -> int:
        """Return `wanted`, or the nearest count that the scaling policies allow within their period."""
        options = self.options
        up = wanted > count
        since_s = at_s - (options.scale_up_period_s if up else options.scale_down_period_s) + SAME_S
        start = count - self._scalings.since(since_s)
        if up:
            by_share = math.ceil(start * (1 + options.scale_up_percent / 100)) if options.scale_up_percent else count
            by_number = start + options.scale_up_pods if options.scale_up_pods else count
            return min(wanted, max(by_share, by_number, count))
        by_share = math.floor(start * (1 - options.scale_down_percent / 100)) if options.scale_down_percent else count
        by_number = start - options.scale_down_pods if options.scale_down_pods else count
        return max(wanted, min(by_share, by_number, count))
