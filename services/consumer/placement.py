"""Members, plan → owners. Pure and deterministic: any member that leads the group comes to the same result."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from contracts.plan import PlanRecord


@dataclass(frozen=True, slots=True)
class Member:
    """One member of the group, as it introduced itself."""

    member_id: str
    """The group's own id: it decides ownership when two incarnations share a name."""
    name: str
    incarnation: str = ""
    draining: bool = False
    """It is about to leave and asks to be given nothing."""
    since: int = 0
    """Generation of the group in which its process came, which tells the newest of one name; see Introduction."""


def place(
    plan: PlanRecord | None,
    members: Sequence[Member],
    partitions: Sequence[int],
    previous: Mapping[int, str],
    awaited: Collection[str] = (),
) -> dict[str, list[int]]:
    """Return member id → partitions, ascending; each partition has at most one owner, each member an entry.

    previous: partition → member id of the last owner, where known; used only where the plan leaves the choice.
    awaited: absent replicas for whose return their partitions wait, unless another member still has them.
    With an assignment: as planned; what belongs to absent members stays where it is, else the least loaded takes it.
    Without an assignment, or without a plan: sticky by count. No members: an empty dict.
    """
    owned: dict[str, list[int]] = {member.member_id: [] for member in members}
    eligible = _eligible(plan, members)
    if not eligible:
        return owned
    if plan is None or plan.assignment is None:
        _sticky(eligible, partitions, previous, owned)
    else:
        here = {member.member_id for member in members}
        waits = {p for p, name in plan.assignment.items() if name in awaited and previous.get(p) not in here}
        _as_planned(plan.assignment, eligible, [p for p in partitions if p not in waits], previous, owned)
    for mine in owned.values():
        mine.sort()
    return owned


def _eligible(plan: PlanRecord | None, members: Sequence[Member]) -> list[Member]:
    """Return who may own something, by name: the newest of each name; of those who stay and are planned, if any is."""
    newest: dict[str, Member] = {}
    for member in sorted(members, key=lambda each: (each.since, each.incarnation, each.member_id)):
        newest[member.name] = member
    staying = [member for member in newest.values() if not member.draining] or list(newest.values())
    planned = [member for member in staying if plan is not None and member.name in plan.replicas]
    return sorted(planned or staying, key=lambda each: each.name)


def _as_planned(
    assignment: Mapping[int, str],
    eligible: Sequence[Member],
    partitions: Sequence[int],
    previous: Mapping[int, str],
    owned: dict[str, list[int]],
) -> None:
    ids = {member.name: member.member_id for member in eligible}
    orphans: list[int] = []
    for partition in sorted(partitions):
        owner = ids.get(assignment.get(partition, ""))
        if owner is None and previous.get(partition) in ids.values():
            owner = previous[partition]
        if owner is None:
            orphans.append(partition)
        else:
            owned[owner].append(partition)
    for partition in orphans:
        least = min(eligible, key=lambda each: (len(owned[each.member_id]), each.name))
        owned[least.member_id].append(partition)


def _sticky(
    eligible: Sequence[Member], partitions: Sequence[int], previous: Mapping[int, str], owned: dict[str, list[int]]
) -> None:
    """Even counts (they differ by at most one) with as few moves as even counts allow."""
    kept: dict[str, list[int]] = {member.member_id: [] for member in eligible}
    for partition in sorted(partitions):
        if (owner := previous.get(partition, "")) in kept:
            kept[owner].append(partition)
    share, larger = divmod(len(partitions), len(eligible))
    # The larger shares go to those who hold most already: each of them then gives one partition less away.
    by_holding = sorted(eligible, key=lambda each: (-len(kept[each.member_id]), each.name))
    quota = {member.member_id: share + (rank < larger) for rank, member in enumerate(by_holding)}
    for member_id, mine in kept.items():
        owned[member_id] = mine[: quota[member_id]]
    taken = {partition for mine in owned.values() for partition in mine}
    free = iter([partition for partition in sorted(partitions) if partition not in taken])
    for member in eligible:
        mine = owned[member.member_id]
        mine.extend(islice(free, quota[member.member_id] - len(mine)))
