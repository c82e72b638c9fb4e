"""The plan: the number of replicas, their names, and the owner of each partition. One process at a time writes it."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from contracts.fields import MAX_EPOCH, Count, Moment, Name, Names, Partition, Reason, Seconds, Text

PLAN_VERSION: Final = 1
ASSIGNOR: Final = "plan"  # name of the assignor by which the members of a group agree to follow plans
PLANNER: Final = "tailpack-planner"  # client id and instance id of the autoscaler in a group; a second one replaces it


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence that a member is dead. Surviving members may then remove it from the group."""

    replica: Name
    member_id: Text
    incarnation: Text


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the plan topic, with key `plan_key`. Unknown fields are ignored, so that older replicas can read it."""

    epoch: Annotated[int, Meta(ge=1, le=MAX_EPOCH)]
    at_us: Moment
    replicas: Names
    assignment: dict[Partition, Text] | None
    reason: Reason
    evictions: Annotated[tuple[Eviction, ...], Meta(max_length=10_000)] = ()
    grace_s: Seconds = 0.0
    wanted: Count = 0
    group: Text = ""
    topic: Text = ""
    v: int = PLAN_VERSION

    @property
    def count(self) -> int:
        """Number of replicas in the plan."""
        return max(self.wanted, len(self.replicas))

    def is_for(self, topic: str) -> bool:
        """Return whether the plan is for `topic`. Plans of an earlier version name no topic and are for every topic."""
        return self.topic in ("", topic)


_decoder: Final = msgspec.json.Decoder(PlanRecord)


def plan_key(group: str, topic: str) -> bytes:
    """Return the key TOPIC/GROUP of a group's plans. No topic name has a slash. Earlier versions used the key GROUP."""
    return f"{topic}/{group}".encode()


def decode_plan(value: bytes | None, key: bytes | None, group: str) -> PlanRecord | None:
    """Return a plan, or None if it is another group's plan. Raises one of `contracts.validation.DECODE_ERRORS`."""
    if key is not None and group.encode() not in (key, key.partition(b"/")[2]):
        return None
    plan = _decoder.decode(value or b"")
    if plan.v != PLAN_VERSION:
        raise msgspec.ValidationError(f"version {plan.v} is not supported (supported: {PLAN_VERSION})")
    if plan.group and key not in (None, plan_key(plan.group, plan.topic)):
        raise msgspec.ValidationError("group and topic differ from those in the record's key")
    return plan if plan.group in ("", group) else None
