"""Settings and metrics of the shadow. Label `of`: `group` is the real group, `would_be` the shadow group."""

from dataclasses import dataclass

from autoscaler.live.settings import Pages, PolicyOptions
from autoscaler.policies.settings import Guards, Scaling
from contracts.metrics import counter, gauge
from contracts.settings import Target, setting
from contracts.topics import ScaledGroup

REPLICAS = gauge("tailpack_shadow_replicas", "replicas", "Replicas of the real and the shadow group", "of")
LAG = gauge("tailpack_shadow_lag_seconds", "seconds", "Age of the oldest waiting event", "of")
MINUTES = gauge("tailpack_shadow_replica_minutes", "replica-minutes", "Replica-minutes since the start", "of")
LATE = gauge("tailpack_shadow_late_seconds", "seconds", "Time with the oldest waiting event over the target", "of")
COMPARED = gauge("tailpack_shadow_watched_seconds", "seconds", "Duration of the comparison")
SERVICE_RATE = gauge("tailpack_shadow_service_rate_events_per_second", "events/s", "Service rate of a busy member")
CONDITION = gauge("tailpack_shadow_condition", "", "1: this component has a problem; /healthz has the reason", "type")
DECISIONS = counter("tailpack_shadow_decisions_total", "decisions", "Decisions of the policy (not applied)", "action")


@dataclass(frozen=True, kw_only=True)
class ShadowSettings(Scaling, Target, Guards, ScaledGroup, PolicyOptions, Pages):
    """Settings of the shadow: TAILPACK_TOPIC, TAILPACK_GROUP, TAILPACK_POLICY, …"""

    member_rate: float = setting(0.0, "events/s", least=0)
    """Service rate of one busy member; 0: learned while members have lag."""
    member_startup_s: float = setting(10.0, "s", least=0)
    """Start-up time of a member."""
