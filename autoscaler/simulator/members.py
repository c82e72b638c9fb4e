"""The replicas of a simulated group, their cost, and the present and planned owners of partitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autoscaler.model import Plan
from autoscaler.packing.owners import spread
from contracts.journal import ReplicaChange, ReplicaChanged


@dataclass(slots=True)
class Member:
    """One incarnation of a replica. A name that is requested again after its end is another member."""

    name: str
    number: int
    requested_us: int
    ready_us: int | None = None
    planned: bool = True
    """Whether the newest plan contains the replica; else the replica is being removed."""

    @property
    def ready(self) -> bool:
        """Whether the replica can serve."""
        return self.ready_us is not None

    def starting_s(self, now_us: int) -> float:
        """Return the time from its request until it was ready, or until now, seconds."""
        return ((now_us if self.ready_us is None else self.ready_us) - self.requested_us) / 1e6


class Members:
    """All replicas that cost money, in the order of their requests, and the record of all past ones."""

    def __init__(self) -> None:
        self.leaving: list[Member] = []
        """Replicas that are being removed."""
        self._present: dict[str, Member] = {}
        self.names: list[str] = []
        self.requested: list[tuple[int, int]] = []
        """(Time in µs, replicas paid for from then on)."""
        self.changes: list[ReplicaChanged] = []
        """Changes of replicas, with `at_us` in µs since the start of the run."""

    def __contains__(self, member: Member) -> bool:
        return self._present.get(member.name) is member

    def get(self, name: str) -> Member | None:
        """Return the replica called `name`, also while it is being removed; else None."""
        return self._present.get(name)

    @property
    def planned(self) -> list[Member]:
        """Replicas that were requested and are not being removed, oldest request first."""
        return [member for member in self._present.values() if member.planned]

    def request(self, name: str, number: int, at_us: int) -> Member:
        """Add a replica. From now on it costs money. Its number must be the next one."""
        assert number == len(self.names), f"replica {number} is the {len(self.names) + 1}th"
        member = self._present[name] = Member(name, number, at_us)
        self.names.append(name)
        self._note(member, ReplicaChange.REQUESTED, at_us)
        return member

    def plan(self, names: Sequence[str]) -> None:
        """Mark all replicas except `names` as leaving."""
        wanted = set(names)
        for member in self._present.values():
            member.planned = member.name in wanted
        self.leaving = [member for member in self._present.values() if not member.planned]

    def make_ready(self, member: Member, at_us: int) -> None:
        """Mark a replica as ready to serve."""
        member.ready_us = at_us
        self._note(member, ReplicaChange.READY, at_us)

    def remove(self, member: Member, at_us: int, why: ReplicaChange) -> None:
        """Remove a replica. It no longer costs money. why: LEFT or DIED."""
        del self._present[member.name]
        if not member.planned:
            self.leaving.remove(member)
        self._note(member, why, at_us)

    def _note(self, member: Member, change: ReplicaChange, at_us: int) -> None:
        self.changes.append(ReplicaChanged(at_us=at_us, replica=member.name, change=change))
        if self.requested and self.requested[-1][0] == at_us:
            self.requested.pop()
        if not self.requested or self.requested[-1][1] != len(self._present):
            self.requested.append((at_us, len(self._present)))


Owners = Mapping[int, str]
"""Partition → name of the replica."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Owners by partition. aim: name of the owner in the plan in force. now: number of the replica that owns it now.

    They differ while the new owner is not ready. Until then the previous owner keeps the partition (make before break).
    """

    aim: dict[int, str]
    now: tuple[int, ...]


def first_placement(partitions: int, members: Sequence[Member]) -> Placement:
    """Return the placement at the start of a run."""
    aim = assign(partitions, [member.name for member in members], {})
    number = {member.name: member.number for member in members}
    return Placement(aim, tuple(number[aim[partition]] for partition in range(partitions)))


def follow_plan(before: Placement, plan: Plan) -> Placement:
    """Return `before` with the owners of a new plan. Raises ValueError for owners that are not its replicas."""
    if plan.assignment is None:
        return before
    strangers = sorted(set(plan.assignment.values()) - set(plan.replicas))
    if strangers:
        raise ValueError(f"the plan assigns partitions to {', '.join(strangers)}, which are not among its replicas")
    beyond = sorted(set(plan.assignment) - before.aim.keys())
    if beyond:
        raise ValueError(f"the plan assigns partition {beyond[0]}, which does not exist ({len(before.aim)} partitions)")
    return Placement(before.aim | dict(plan.assignment), before.now)


def place_partitions(
    before: Placement, members: Sequence[Member], *, counted: bool, dying: frozenset[int], dead: frozenset[int]
) -> Placement:
    """Return the placement for the replicas that are ready now.

    members: planned replicas. counted: the plan has only a count, so the assignor spreads the partitions over the ready
    replicas. dying: ids of replicas that died and are not evicted yet. dead: ids of evicted replicas. A partition whose
    planned owner is no member, or whose replica is dead, goes to the ready replica with the fewest partitions.
    """
    ready = [member for member in members if member.ready]
    names = [member.name for member in ready]
    if not ready:
        return before
    partitions = len(before.now)
    aim = assign(partitions, names, before.aim) if counted else dict(before.aim)
    present = {member.name: member for member in members}
    owners: dict[int, str] = {}
    now = list(before.now)
    unowned = []
    for partition in range(partitions):
        owner = present.get(aim[partition])
        if owner is not None and owner.ready:
            now[partition] = owner.number
            owners[partition] = owner.name
        elif now[partition] in dead or (owner is None and now[partition] not in dying):
            unowned.append(partition)
    spread(owners, unowned, names)
    for partition in unowned:
        now[partition] = present[owners[partition]].number
        if aim[partition] not in present:
            aim[partition] = owners[partition]
    return Placement(aim, tuple(now))


def assign(partitions: int, replicas: Sequence[str], owners: Owners) -> dict[int, str]:
    """Return partition → replica for a plan with only a count, as Kafka's sticky and uniform assignors do.

    Numbers of partitions differ by at most one, with the fewest moves that this allows. If they cannot be equal, the
    replicas that own most now get one more, which saves moves. owners: present owners, including removed replicas.
    """
    each, more = divmod(partitions, len(replicas))
    owned: dict[str, list[int]] = {name: [] for name in replicas}
    for partition in range(partitions):
        if (owner := owners.get(partition)) in owned:
            owned[owner].append(partition)
    by_size = sorted(replicas, key=lambda name: -len(owned[name]))  # a stable sort: on ties the oldest first
    room = {name: each + (index < more) for index, name in enumerate(by_size)}
    placed = {partition: name for name in replicas for partition in owned[name][: room[name]]}
    spread(placed, (partition for partition in range(partitions) if partition not in placed), replicas, room)
    return dict(sorted(placed.items()))
