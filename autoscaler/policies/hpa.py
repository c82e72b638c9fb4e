"""Kubernetes' HorizontalPodAutoscaler with one external metric of type AverageValue: from a sum to a count.

Written after its documentation ("Horizontal Pod Autoscaling": algorithm details, scaling policies, stabilization
window, default behavior) and checked against its sources (1.33 or later, where the tolerance can be set per object):
`horizontal.go` and `replica_calculator.go` in pkg/controller/podautoscaler, defaults in pkg/apis/autoscaling/v2.
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

from autoscaler.policies.scalings import Scalings
from contracts.settings import Rule, Settings, Values, setting


@dataclass(frozen=True, kw_only=True)
class HpaSettings(Settings):
    """Fields of an HPA and flags of its controller, at their defaults. Raises ValueError naming every mistake."""

    min_replicas: int = setting(1, "replicas", least=1)
    """spec.minReplicas. 1, so that nothing needs to be activated from 0."""
    max_replicas: int = setting(100, "replicas", least=0)
    """spec.maxReplicas; 100 is what KEDA writes there."""
    sync_s: float = setting(15.0, "s", least=0)
    """Seconds between two looks at the metric: --horizontal-pod-autoscaler-sync-period."""
    tolerance: float = setting(0.1, least=0)
    """No change while metric/(count·target) is within 1 ± tolerance: --horizontal-pod-autoscaler-tolerance. From 10
    replicas on, one more or one less lies within it."""
    scale_up_stabilisation_s: float = setting(0.0, "s", least=0)
    """behavior.scaleUp.stabilizationWindowSeconds: up to the fewest recommended in so many seconds."""
    scale_down_stabilisation_s: float = setting(300.0, "s", least=0)
    """behavior.scaleDown.stabilizationWindowSeconds: down to the most recommended in so many seconds."""
    scale_up_percent: float = setting(100.0, "%", least=0)
    """behavior.scaleUp.policies: at most so much of the count may come in scale_up_period_s; 0: no such policy."""
    scale_up_pods: int = setting(4, "replicas", least=0)
    """… or so many replicas, whichever is more; 0: no such policy. Neither: never up."""
    scale_up_period_s: float = setting(15.0, "s", least=0)
    """Seconds that the policies for up look back."""
    scale_down_percent: float = setting(100.0, "%", least=0)
    """behavior.scaleDown.policies: at most so much of the count may leave in scale_down_period_s; 0: no such policy."""
    scale_down_pods: int = setting(0, "replicas", least=0)
    """… or so many replicas, whichever is more; 0: no such policy. Neither: never down."""
    scale_down_period_s: float = setting(15.0, "s", least=0)
    """Seconds that the policies for down look back."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return: min_replicas ≤ max_replicas."""
        return (("max_replicas", _at_least_minimum),)


def _at_least_minimum(values: Values) -> str | None:
    least = values["min_replicas"]
    return None if values["max_replicas"] >= least else f"must be at least min_replicas = {least}"


SLACK_S: Final = 1e-6
"""Times that differ by less are the same: 15 s after 0.1 s is 15.1 s, whatever floating point says."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What one sync comes to."""

    count: int
    why: str


class HorizontalPodAutoscaler:
    """Keeps metric/count near the target.

    At each sync: desired = ⌈metric/target⌉, which is ⌈count × (metric/count)/target⌉, unless within the tolerance;
    then the stabilisation windows, over what was desired at past syncs and the count at the first; then the policies
    that limit its pace, over the changes seen; then minimum and maximum.
    """

    def __init__(self, settings: HpaSettings) -> None:
        self.settings = settings
        self._next_s = -math.inf
        self._desired: deque[tuple[float, int]] = deque()

    def until_sync_s(self, at_s: float) -> float:
        """Return how long it is until the next sync; 0 when it is due."""
        wait_s = self._next_s - at_s
        return wait_s if wait_s > SLACK_S else 0.0

    def sync(self, at_s: float, count: int, metric: float, target: float, scalings: Scalings) -> Recommendation:
        """Return the count to ask for. metric: of the whole group; target: of one replica; count: requested, ≥ 1."""
        following_s = self._next_s + self.settings.sync_s
        self._next_s = following_s if following_s > at_s else at_s + self.settings.sync_s
        ratio, tolerance = metric / (count * target), self.settings.tolerance
        inside = 1 - tolerance <= ratio <= 1 + tolerance
        desired = count if inside else math.ceil(metric / target)
        why = [f"{ratio:.2f} of the target for {count}" + (", within the tolerance" if inside else "")]
        stabilised = self._stabilised(at_s, count, desired)
        if stabilised != desired:
            why.append(f"{desired} desired, but {stabilised} by the stabilisation window")
        paced = self._paced(at_s, count, stabilised, scalings)
        if paced != stabilised:
            why.append(f"no faster than to {paced}")
        bounded = min(max(paced, self.settings.min_replicas), self.settings.max_replicas)
        if bounded != paced:
            why.append(f"between {self.settings.min_replicas} and {self.settings.max_replicas}")
        return Recommendation(bounded, "; ".join(why))

    def _stabilised(self, at_s: float, count: int, desired: int) -> int:
        """Return the count nearest to the present one that the windows allow, and remember what is desired now."""
        up_s, down_s = self.settings.scale_up_stabilisation_s, self.settings.scale_down_stabilisation_s
        if not self._desired:
            self._desired.append((at_s, count))
        fewest = min((past for past_s, past in self._desired if past_s > at_s - up_s + SLACK_S), default=desired)
        most = max((past for past_s, past in self._desired if past_s > at_s - down_s + SLACK_S), default=desired)
        self._desired.append((at_s, desired))
        while len(self._desired) > 1 and self._desired[0][0] <= at_s - max(up_s, down_s):
            self._desired.popleft()
        return min(max(count, min(fewest, desired)), max(most, desired))

    def _paced(self, at_s: float, count: int, wanted: int, scalings: Scalings) -> int:
        """Return `wanted`, or as far towards it as the policies let the count go within their period."""
        settings = self.settings
        up = wanted > count
        since_s = at_s - (settings.scale_up_period_s if up else settings.scale_down_period_s) + SLACK_S
        start = count - scalings.added(since_s) + scalings.removed(since_s)
        if up:
            by_share = math.ceil(start * (1 + settings.scale_up_percent / 100)) if settings.scale_up_percent else count
            by_number = start + settings.scale_up_pods if settings.scale_up_pods else count
            return min(wanted, max(by_share, by_number, count))
        by_share = math.floor(start * (1 - settings.scale_down_percent / 100)) if settings.scale_down_percent else count
        by_number = start - settings.scale_down_pods if settings.scale_down_pods else count
        return max(wanted, min(by_share, by_number, count))
