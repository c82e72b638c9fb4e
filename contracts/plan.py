"""The plan: the number of replicas, their names, and the owner of each partition. A log with one writer at a time."""

from typing import Final

import msgspec

PLAN_VERSION: Final = 1
ASSIGNOR: Final = "plan"  # name of the assignor by which the members of a group agree to follow plans


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence that a member is dead. Surviving members may leave the group on its behalf."""

    replica: str
    member_id: str
    incarnation: str


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the plan topic. Unknown fields are ignored, so that older replicas can read newer plans."""

    epoch: int
    at_us: int
    replicas: tuple[str, ...]
    assignment: dict[int, str] | None
    reason: str
    evictions: tuple[Eviction, ...] = ()
    grace_s: float = 0.0
    wanted: int = 0
    v: int = PLAN_VERSION

    @property
    def count(self) -> int:
        """Number of replicas in the plan."""
        return max(self.wanted, len(self.replicas))
