"""Decides which member owns which partition. Pure and deterministic: every leader computes the same result."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from contracts.plan import PlanRecord


@dataclass(frozen=True, slots=True)
class Member:
    """One member of the group."""

    member_id: str
    """The id that the group gave it. It identifies the owner when two incarnations share a name."""
    name: str
    incarnation: str = ""
    is_draining: bool = False
    """Whether it is about to leave and must get no partitions."""
    first_generation: int = 0
    """Generation of its process's first assignment, see MemberMetadata."""


def place(
    plan: PlanRecord | None,
    members: Sequence[Member],
    partitions: Sequence[int],
    previous: Mapping[int, str],
    absent_in_grace: Collection[str] = (),
) -> dict[str, list[int]]:
    """Return member id → partitions, ascending. Each partition has at most one owner, each member an entry.

    If the plan has an assignment, it is followed. A partition whose planned owner is absent stays with its last owner;
    without one, the member with the fewest partitions takes it. Otherwise all members get even counts, with few moves.
    previous: partition → member id of the last owner, if known.
    absent_in_grace: absent replicas whose partitions wait for their return, unless another member still owns them.
    """
    owned: dict[str, list[int]] = {member.member_id: [] for member in members}
    eligible = _eligible(plan, members)
    if not eligible:
        return owned
    if plan is None or plan.assignment is None:
        _place_evenly(eligible, partitions, previous, owned)
    else:
        here = {member.member_id for member in members}
        waits = {p for p, name in plan.assignment.items() if name in absent_in_grace and previous.get(p) not in here}
        _place_as_planned(plan.assignment, eligible, [p for p in partitions if p not in waits], previous, owned)
    for partition_list in owned.values():
        partition_list.sort()
    return owned


def _eligible(plan: PlanRecord | None, members: Sequence[Member]) -> list[Member]:
    by_name: dict[str, Member] = {}
    for member in sorted(members, key=lambda m: (m.first_generation, m.incarnation, m.member_id)):
        by_name[member.name] = member
    not_draining = [member for member in by_name.values() if not member.is_draining] or list(by_name.values())
    planned = [member for member in not_draining if plan is not None and member.name in plan.replicas]
    return sorted(planned or not_draining, key=lambda member: member.name)


def _place_as_planned(
    assignment: Mapping[int, str],
    eligible: Sequence[Member],
    partitions: Sequence[int],
    previous: Mapping[int, str],
    owned: dict[str, list[int]],
) -> None:
    ids = {member.name: member.member_id for member in eligible}
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
        least_loaded = min(eligible, key=lambda member: (len(owned[member.member_id]), member.name))
        owned[least_loaded.member_id].append(partition)


def _place_evenly(
    eligible: Sequence[Member], partitions: Sequence[int], previous: Mapping[int, str], owned: dict[str, list[int]]
) -> None:
    """Give members counts that differ by at most one, with as few moves as that allows."""
    current: dict[str, list[int]] = {member.member_id: [] for member in eligible}
    for partition in sorted(partitions):
        if (owner := previous.get(partition, "")) in current:
            current[owner].append(partition)
    share, remainder = divmod(len(partitions), len(eligible))
    # The members that own most get the larger shares: each of them then gives up one partition less.
    by_count = sorted(eligible, key=lambda member: (-len(current[member.member_id]), member.name))
    quota = {member.member_id: share + (rank < remainder) for rank, member in enumerate(by_count)}
    for member_id, partition_list in current.items():
        owned[member_id] = partition_list[: quota[member_id]]
    placed = {partition for partition_list in owned.values() for partition in partition_list}
    free = iter([partition for partition in sorted(partitions) if partition not in placed])
    for member in eligible:
        partition_list = owned[member.member_id]
        partition_list.extend(islice(free, quota[member.member_id] - len(partition_list)))
