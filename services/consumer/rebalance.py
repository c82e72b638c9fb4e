"""One round of a rebalance, decided by the group's leader. Pure: what members say of themselves → who gets what.

Incremental: a member keeps what it keeps through the round. What must move is withheld from everybody for one round, in
which its owner finishes, commits and gives it up, and granted in the next. So a partition is granted only when no
member of the round claims it, which is why two members can never both own it.

Eager: everybody has given up everything before joining, so one round is enough.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from contracts.plan import PlanRecord
from contracts.progress import RoundKind
from services.consumer.placement import Member, place

MOST_FOLLOW_UPS: Final = 30
"""Rounds in a row that only wait for an owner to let go. Then it asks for the next round itself, once it has."""

NEW: Final = 2**31 - 1  # more than any generation


class Given(msgspec.Struct, frozen=True, array_like=True):
    """What the last owner of a partition says when it has given it up."""

    offset: int
    """The next event to serve."""
    at_us: int
    """When it stopped serving (its own clock)."""


class Introduction(msgspec.Struct, frozen=True, kw_only=True):
    """User data of a member's subscription. Unknown fields are tolerated."""

    name: str
    incarnation: str = ""
    epoch: int = 0
    """Plan epoch of its last assignment; 0 without a plan."""
    knows: int = 0
    """Epoch of the newest plan that it has read."""
    plan: PlanRecord | None = None
    """That plan itself, where the leader has asked for it."""
    owned: tuple[int, ...] = ()
    """Partitions that it holds now (incremental), or held until this join (eager)."""
    generation: int = -1
    """Generation of its last assignment: of two claims the later one holds."""
    since: int = 0
    """Generation in which its process was given its first assignment; NEW before. Clocks can be set back and differ
    between machines, the group's count can not: of two processes of one name the later one is known by it."""
    given: dict[int, Given] = {}
    """Partitions that it has given up since that assignment."""
    draining: bool = False
    eager: bool = False
    follows: RoundKind | None = None
    """The last round was to be followed by another, and why."""
    follow_ups: int = 0
    """How many in a row."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """User data of a member's assignment: what it was made from, and what comes with it."""

    epoch: int = 0
    kind: RoundKind = RoundKind.MEMBERSHIP
    members: int = 0
    moved: int = 0
    """Partitions granted in this round to others than their last owners."""
    given: dict[int, Given] = {}
    """Of the partitions granted to this member: where to go on, so that nobody needs to ask the broker."""
    again: bool = False
    """Rejoin at once: something was withheld."""
    follow_ups: int = 0
    asks: bool = False
    """The leader cannot read the plan topic: join again with the plan itself."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one member gets out of a round."""

    partitions: tuple[int, ...]
    origin: Origin


def decide(
    plan: PlanRecord | None,
    introductions: Mapping[str, Introduction],
    partitions: Sequence[int],
    generation: int,
    awaited: Collection[str] = (),
) -> dict[str, Share]:
    """Return member id → share for the round that begins `generation`.

    partitions: all of the topic. awaited: absent replicas whose partitions wait for their return.
    """
    owners = last_owners(introductions)
    members = [Member(id_, one.name, one.incarnation, one.draining, one.since) for id_, one in introductions.items()]
    wanted = place(plan, members, partitions, owners, awaited)
    held = {p: id_ for p, id_ in owners.items() if not introductions[id_].eager}
    granted = {id_: tuple(p for p in mine if held.get(p, id_) == id_) for id_, mine in wanted.items()}
    withheld = sum(map(len, wanted.values())) - sum(map(len, granted.values()))
    kind = _kind(plan, introductions)
    follow_ups = 1 + max((one.follow_ups for one in introductions.values() if one.follows), default=0)
    origin = Origin(
        epoch=plan.epoch if plan else 0,
        kind=kind,
        members=len(introductions),
        moved=sum(owners.get(p) != id_ for id_, mine in granted.items() for p in mine),
        again=withheld > 0 and (_is_new(plan, introductions) or follow_ups <= MOST_FOLLOW_UPS),
        follow_ups=0 if _is_new(plan, introductions) or not withheld else follow_ups,
    )
    given = _offsets(introductions, generation)
    return {
        id_: Share(mine, msgspec.structs.replace(origin, given={p: given[p] for p in mine if p in given}))
        for id_, mine in granted.items()
    }


def last_owners(introductions: Mapping[str, Introduction]) -> dict[int, str]:
    """Return partition → member id of the last owner. A claim from an older generation never beats a newer one."""
    claims: dict[int, tuple[int, str]] = {}
    for member_id, each in introductions.items():
        for partition in each.owned:
            claims[partition] = max(claims.get(partition, (-2, "")), (each.generation, member_id))
    return {partition: member_id for partition, (_, member_id) in claims.items()}


def _offsets(introductions: Mapping[str, Introduction], generation: int) -> dict[int, Given]:
    """Return where to go on with the partitions given up. One from before the last generation may have moved since."""
    fresh = [one.given for one in introductions.values() if one.generation == generation - 1]
    return {partition: given for each in fresh for partition, given in each.items()}


def _is_new(plan: PlanRecord | None, introductions: Mapping[str, Introduction]) -> bool:
    return plan is not None and all(one.epoch < plan.epoch for one in introductions.values())


def _kind(plan: PlanRecord | None, introductions: Mapping[str, Introduction]) -> RoundKind:
    is_start = all(one.generation < 0 for one in introductions.values())  # the plan may be old by then
    if plan is not None and _is_new(plan, introductions) and not is_start:
        return RoundKind.DEATH if plan.evictions else RoundKind.PLAN
    return next((one.follows for one in introductions.values() if one.follows), RoundKind.MEMBERSHIP)
