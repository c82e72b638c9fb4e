"""One rebalance of the group, decided by its leader. Pure: the members' metadata and the plan → each member's share.

Incremental: a member keeps serving the partitions that stay with it. A partition that must move is pending revocation
for one rebalance: no member gets it, and its owner finishes, commits and gives it up. The next rebalance grants it.
A partition is granted only if no member of the rebalance claims it, so two members never own it at the same time.

Eager: all members have given up all partitions before they join, so one rebalance is enough.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from contracts.plan import PlanRecord
from contracts.progress import RebalanceKind
from services.consumer.placement import Member, place

MAX_FOLLOW_UPS: Final = 30
"""Most consecutive rebalances that only wait for an owner. After that the owner requests the next one when ready."""
NO_GENERATION: Final = 2**31 - 1  # greater than any generation


class HandedOverOffset(msgspec.Struct, frozen=True, array_like=True):
    """Where the last owner of a partition stopped."""

    offset: int
    """Offset of the next event to serve."""
    at_us: int
    """When it stopped serving (µs since the epoch, its own clock)."""
    served_us: int = -1
    """How long it served after its last assignment, which all members get at the same time; -1: unknown."""


WIRE_NAMES: Final = {
    "newest_epoch": "knows", "first_generation": "since", "handed_over": "given", "is_draining": "draining",
    "is_eager": "eager", "follow_up_of": "follows", "rejoin": "again", "requests_plan": "asks",
}  # fmt: skip


class MemberMetadata(msgspec.Struct, frozen=True, kw_only=True, rename=WIRE_NAMES):
    """User data of a member's subscription. Unknown fields are tolerated."""

    name: str
    incarnation: str = ""
    epoch: int = 0
    """Plan epoch of its last assignment; 0 without a plan."""
    newest_epoch: int = 0
    """Epoch of the newest plan that it has read."""
    plan: PlanRecord | None = None
    """The newest plan itself, if the leader has requested it."""
    owned: tuple[int, ...] = ()
    """Partitions that it owns now (incremental), or owned until this join (eager)."""
    generation: int = -1
    """Generation of its last assignment. Of two claims to a partition the one with the greater generation is valid."""
    first_generation: int = 0
    """Generation of its process's first assignment; NO_GENERATION before. It identifies the later one of two
    processes with the same name: clocks can be set back and differ between machines, the group's count cannot."""
    handed_over: dict[int, HandedOverOffset] = {}
    """Partitions that it has given up since its last assignment."""
    is_draining: bool = False
    is_eager: bool = False
    follow_up_of: RebalanceKind | None = None
    """Kind of the last rebalance, if that one requested a follow-up."""
    follow_ups: int = 0
    """Number of consecutive follow-ups so far."""


class AssignmentMetadata(msgspec.Struct, frozen=True, kw_only=True, rename=WIRE_NAMES):
    """User data of a member's assignment: how the leader decided it, and where the member starts."""

    epoch: int = 0
    kind: RebalanceKind = RebalanceKind.MEMBERSHIP
    members: int = 0
    moved: int = 0
    """Partitions granted in this rebalance to another member than their last owner."""
    handed_over: dict[int, HandedOverOffset] = {}
    """Start offsets of the member's new partitions, so that it need not query the broker."""
    rejoin: bool = False
    """The member must rejoin at once: some partitions are pending revocation."""
    follow_ups: int = 0
    requests_plan: bool = False
    """The leader cannot read the plan topic, so the member must rejoin with the plan itself."""


@dataclass(frozen=True, slots=True)
class Share:
    """The partitions and the metadata that one member gets."""

    partitions: tuple[int, ...]
    assignment: AssignmentMetadata


def decide(
    plan: PlanRecord | None,
    metadata: Mapping[str, MemberMetadata],
    partitions: Sequence[int],
    generation: int,
    absent_in_grace: Collection[str] = (),
) -> dict[str, Share]:
    """Return member id → Share for the rebalance that begins `generation`.

    partitions: all partitions of the topic. absent_in_grace: absent replicas whose partitions wait for their return.
    """
    owners = last_owners(metadata)
    members = [Member(id_, m.name, m.incarnation, m.is_draining, m.first_generation) for id_, m in metadata.items()]
    targets = place(plan, members, partitions, owners, absent_in_grace)
    claimants = {p: id_ for p, id_ in owners.items() if not metadata[id_].is_eager}
    grants = {id_: tuple(p for p in target if claimants.get(p, id_) == id_) for id_, target in targets.items()}
    pending_revocations = sum(map(len, targets.values())) - sum(map(len, grants.values()))
    kind = _rebalance_kind(plan, metadata)
    follow_ups = 1 + max((member.follow_ups for member in metadata.values() if member.follow_up_of), default=0)
    assignment = AssignmentMetadata(
        epoch=plan.epoch if plan else 0,
        kind=kind,
        members=len(metadata),
        moved=sum(owners.get(p) != id_ for id_, grant in grants.items() for p in grant),
        rejoin=pending_revocations > 0 and (_is_new_plan(plan, metadata) or follow_ups <= MAX_FOLLOW_UPS),
        follow_ups=0 if _is_new_plan(plan, metadata) or not pending_revocations else follow_ups,
    )
    starts = _handed_over_offsets(metadata, generation)
    return {
        id_: Share(grant, msgspec.structs.replace(assignment, handed_over={p: starts[p] for p in grant if p in starts}))
        for id_, grant in grants.items()
    }


def last_owners(metadata: Mapping[str, MemberMetadata]) -> dict[int, str]:
    """Return partition → member id of the last owner. A claim from an older generation never beats a newer one."""
    claims: dict[int, tuple[int, str]] = {}
    for member_id, member in metadata.items():
        for partition in member.owned:
            claims[partition] = max(claims.get(partition, (-2, "")), (member.generation, member_id))
    return {partition: member_id for partition, (_, member_id) in claims.items()}


def _handed_over_offsets(metadata: Mapping[str, MemberMetadata], generation: int) -> dict[int, HandedOverOffset]:
    # A member that missed the last generation may have given up a partition that was served by others since.
    current = [member.handed_over for member in metadata.values() if member.generation == generation - 1]
    return {partition: offset for handed_over in current for partition, offset in handed_over.items()}


def _is_new_plan(plan: PlanRecord | None, metadata: Mapping[str, MemberMetadata]) -> bool:
    return plan is not None and all(member.epoch < plan.epoch for member in metadata.values())


def _rebalance_kind(plan: PlanRecord | None, metadata: Mapping[str, MemberMetadata]) -> RebalanceKind:
    is_start = all(member.generation < 0 for member in metadata.values())
    if plan is not None and _is_new_plan(plan, metadata) and not is_start:  # at a start the plan may be old
        return RebalanceKind.DEATH if plan.evictions else RebalanceKind.PLAN
    return next((member.follow_up_of for member in metadata.values() if member.follow_up_of), RebalanceKind.MEMBERSHIP)
