"""What the shadow is told by its environment."""

from dataclasses import dataclass

from autoscaler.live.settings import Pages
from autoscaler.policies.settings import Guards, Scaling
from contracts.settings import Target, setting
from contracts.topics import ScaledGroup


@dataclass(frozen=True, kw_only=True)
class ShadowSettings(Scaling, Target, Guards, ScaledGroup, Pages):
    """Environment: TAILPACK_TOPIC, TAILPACK_GROUP, TAILPACK_POLICY, …"""

    member_rate: float = setting(0.0, "events/s", least=0)
    """What one member serves when it is never idle; 0: learned from what members commit while they are behind."""
    member_startup_s: float = setting(10.0, "s", least=0)
    """From the request of a member until it would serve; the pods of the group say best how long that is."""
    policy_options: str = setting("")
    """What the policy itself can be told, as a JSON object: {"patience_s": 5}."""
