"""Decides one rebalance of the group, on its leader: each member's share follows from the plan and members' metadata.

Incremental: a member keeps serving the partitions that stay with it. A partition that must move is pending revocation
for one rebalance: no member gets it, and its owner finishes, commits and gives it up. The next rebalance grants it.
A partition is granted only if no member of the rebalance claims it, so two members never own it at the same time.

Eager: all members have given up all partitions before they join, so one rebalance is enough.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from contracts.fields import Count, Epoch, Generation, Moment, Offset, Partition, Partitions, Text
from contracts.plan import PlanRecord
from contracts.progress import RebalanceKind

MAX_FOLLOW_UPS: Final = 30
"""Most rebalances in a row that only wait for an owner. Then the owner requests the next rebalance when ready."""
NO_GENERATION: Final = 2**31 - 1  # greater than any generation

FollowUps = Annotated[int, Meta(ge=0, le=2 * MAX_FOLLOW_UPS)]


class HandedOverOffset(msgspec.Struct, frozen=True, array_like=True):
    """Where the last owner of a partition stopped."""

    offset: Offset
    """Offset of the next event to serve."""
    at_us: Moment
    """When the last owner stopped serving (µs since the epoch, by its own clock)."""
    served_us: int = -1
    """How long it served after its last assignment, µs. All members get an assignment at the same time. -1: unknown."""


WIRE_NAMES: Final = {
    "newest_epoch": "knows", "first_generation": "since", "handed_over": "given", "is_draining": "draining",
    "is_eager": "eager", "follow_up_of": "follows", "rejoin": "again",
}  # fmt: skip


class MemberMetadata(msgspec.Struct, frozen=True, kw_only=True, rename=WIRE_NAMES):
    """User data of a member's subscription. Unknown fields are tolerated."""

    name: Text
    incarnation: Text = ""
    epoch: Epoch = 0
    """Plan epoch of its last assignment; 0 without a plan."""
    newest_epoch: Epoch = 0
    """Epoch of the newest plan that it has read."""
    owned: Partitions = ()
    """Partitions that it owns now (incremental), or owned until this join (eager)."""
    generation: Generation = -1
    """Generation of its last assignment. Of two claims to a partition the one with the greater generation is valid."""
    first_generation: Generation = 0
    """Generation of its process's first assignment; NO_GENERATION before. Of two processes with the same name it
    identifies the later one. Clocks would not, because they differ between machines and can be set back."""
    handed_over: dict[Partition, HandedOverOffset] = {}
    """Partitions that it has given up since its last assignment."""
    is_draining: bool = False
    is_eager: bool = False
    follow_up_of: RebalanceKind | None = None
    """Kind of the last rebalance, if it requested a follow-up."""
    follow_ups: FollowUps = 0
    """Number of consecutive follow-ups so far."""


class AssignmentMetadata(msgspec.Struct, frozen=True, kw_only=True, rename=WIRE_NAMES):
    """User data of a member's assignment: how the leader decided it, and where the member starts."""

    epoch: Epoch = 0
    kind: RebalanceKind = RebalanceKind.MEMBERSHIP
    members: Count = 0
    moved: Count = 0
    """Partitions granted in this rebalance to another member than their last owner."""
    handed_over: dict[Partition, HandedOverOffset] = {}
    """Start offsets of the member's new partitions, so that it need not query the broker."""
    rejoin: bool = False
    """The member must rejoin at once, because some partitions are pending revocation."""
    follow_ups: FollowUps = 0
    refused: Text = ""
    """Why the member gets no partitions; empty: it may get some."""


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
    targets = place(plan, metadata, partitions, owners, absent_in_grace)
    claimants = {p: id_ for p, id_ in owners.items() if not metadata[id_].is_eager}
    grants = {id_: tuple(p for p in target if claimants.get(p, id_) == id_) for id_, target in targets.items()}
    pending_revocations = sum(map(len, targets.values())) - sum(map(len, grants.values()))
    kind = _rebalance_kind(plan, metadata)
    last = max((member.follow_ups for member in metadata.values() if member.follow_up_of), default=0)
    follow_ups = 1 + min(last, MAX_FOLLOW_UPS)
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
    """Return partition → member id of the last owner. If members claim the same, the newest generation counts."""
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


def place(
    plan: PlanRecord | None,
    members: Mapping[str, MemberMetadata],
    partitions: Sequence[int],
    previous: Mapping[int, str],
    absent_in_grace: Collection[str] = (),
) -> dict[str, list[int]]:
    """Return member id → its partitions, ascending, for every member. Each partition has at most one owner.

    If the plan has an assignment, it is followed. A partition whose planned owner is absent stays with its last owner,
    or else goes to the member with the fewest partitions. If the plan has no assignment, all members get even counts
    with few moves. Every leader computes the same result.
    previous: partition → member id of the last owner, if known.
    absent_in_grace: absent replicas whose partitions wait for their return, unless another member still owns them.
    """
    owned: dict[str, list[int]] = {member_id: [] for member_id in members}
    ids = _eligible(plan, members)
    if not ids:
        return owned
    if plan is None or plan.assignment is None:
        _place_evenly(ids, partitions, previous, owned)
    else:
        names = plan.assignment.items()
        waits = {p for p, name in names if name in absent_in_grace and previous.get(p) not in members}
        _place_as_planned(plan.assignment, ids, [p for p in partitions if p not in waits], previous, owned)
    for partition_list in owned.values():
        partition_list.sort()
    return owned


def _eligible(plan: PlanRecord | None, members: Mapping[str, MemberMetadata]) -> dict[str, str]:
    """Return name → id of the newest process of each name. Draining and unplanned ones only if no others exist."""
    ids: dict[str, str] = {}
    for id_, member in sorted(members.items(), key=lambda at: (at[1].first_generation, at[1].incarnation, at[0])):
        ids[member.name] = id_
    not_draining = [name for name, id_ in ids.items() if not members[id_].is_draining] or list(ids)
    planned = [name for name in not_draining if plan is not None and name in plan.replicas]
    return {name: ids[name] for name in sorted(planned or not_draining)}


def _place_as_planned(
    assignment: Mapping[int, str],
    ids: Mapping[str, str],
    partitions: Sequence[int],
    previous: Mapping[int, str],
    owned: dict[str, list[int]],
) -> None:
    unplanned: list[int] = []
    for partition in sorted(partitions):
        owner = ids.get(assignment.get(partition, ""))
        if owner is None and previous.get(partition) in ids.values():
            owner = previous[partition]
        if owner is None:
            unplanned.append(partition)
        else:
            owned[owner].append(partition)
    for partition in unplanned:
        least_loaded = min(ids, key=lambda name: (len(owned[ids[name]]), name))
        owned[ids[least_loaded]].append(partition)


def _place_evenly(
    ids: Mapping[str, str], partitions: Sequence[int], previous: Mapping[int, str], owned: dict[str, list[int]]
) -> None:
    """Give members counts that differ by at most one, with as few moves as that allows."""
    current: dict[str, list[int]] = {member_id: [] for member_id in ids.values()}
    for partition in sorted(partitions):
        if (owner := previous.get(partition, "")) in current:
            current[owner].append(partition)
    share, remainder = divmod(len(partitions), len(ids))
    # The members that own most get the larger shares: each of them then gives up one partition less.
    by_count = sorted(ids, key=lambda name: (-len(current[ids[name]]), name))
    quota = {ids[name]: share + (rank < remainder) for rank, name in enumerate(by_count)}
    for member_id, partition_list in current.items():
        owned[member_id] = partition_list[: quota[member_id]]
    placed = {partition for partition_list in owned.values() for partition in partition_list}
    free = iter([partition for partition in sorted(partitions) if partition not in placed])
    for member_id in ids.values():
        owned[member_id].extend(islice(free, quota[member_id] - len(owned[member_id])))
