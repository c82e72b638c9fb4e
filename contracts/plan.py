"""The plan: how many Payment replicas, which, and who owns which partition. A log with one writer at a time."""

from typing import Final

import msgspec

PLAN_VERSION: Final = 1
ASSIGNOR: Final = "plan"  # by this name the members of a group agree that plans say who owns what


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence that a member is dead. Survivors may leave the group on its behalf."""

    replica: str
    member_id: str
    incarnation: str


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the plan topic. Unknown fields are tolerated, so that older replicas can read newer plans."""

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
        """How many replicas there shall be."""
        return max(self.wanted, len(self.replicas))
