"""The replicas of a simulated group: who is there, who costs money, and who shall have what, now and in the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autoscaler.model import Plan
from autoscaler.packing.owners import spread_by_count
from contracts.journal import ReplicaChange, ReplicaChanged


@dataclass(slots=True)
class Member:
    """One life of a replica. A name that is requested again after its end is another one."""

    name: str
    number: int
    ready: bool = False
    planned: bool = True
    """Named by the newest plan; else it is being removed."""


class Members:
    """All replicas that cost money, in the order of their requests, and the record of those that ever did."""

    def __init__(self, *, keep: bool = True) -> None:
        """keep: off, and no changes are recorded."""
        self._keep = keep
        self.leaving: list[Member] = []
        """Being removed."""
        self._present: dict[str, Member] = {}
        self.names: list[str] = []
        self.requested: list[tuple[int, int]] = []
        """(µs, replicas paid for from then on)."""
        self.changes: list[ReplicaChanged] = []
        """at_us: µs since the start of the run."""

    def __contains__(self, member: Member) -> bool:
        return self._present.get(member.name) is member

    def get(self, name: str) -> Member | None:
        """Return the replica of that name, also while it is being removed; None when there is none."""
        return self._present.get(name)

    @property
    def planned(self) -> list[Member]:
        """Requested and not being removed, in the order of their requests."""
        return [member for member in self._present.values() if member.planned]

    def request(self, name: str, number: int, at_us: int) -> Member:
        """Add a replica; from now on it costs money. Its number must be the next one."""
        assert number == len(self.names), f"replica {number} is the {len(self.names) + 1}th"
        member = self._present[name] = Member(name, number)
        self.names.append(name)
        self._note(member, ReplicaChange.REQUESTED, at_us)
        return member

    def plan(self, names: Sequence[str]) -> None:
        """Take note of who shall stay."""
        wanted = set(names)
        for member in self._present.values():
            member.planned = member.name in wanted
        self.leaving = [member for member in self._present.values() if not member.planned]

    def make_ready(self, member: Member, at_us: int) -> None:
        """Take note that it could serve now."""
        member.ready = True
        self._note(member, ReplicaChange.READY, at_us)

    def remove(self, member: Member, at_us: int, why: ReplicaChange) -> None:
        """Take it out: it costs nothing any more. why: LEFT or DIED."""
        del self._present[member.name]
        if not member.planned:
            self.leaving.remove(member)
        self._note(member, why, at_us)

    def _note(self, member: Member, change: ReplicaChange, at_us: int) -> None:
        if self._keep:
            self.changes.append(ReplicaChanged(at_us=at_us, replica=member.name, change=change))
        if self.requested and self.requested[-1][0] == at_us:
            self.requested.pop()
        if not self.requested or self.requested[-1][1] != len(self._present):
            self.requested.append((at_us, len(self._present)))


Owners = Mapping[int, str]
"""Partition → name of the replica."""


@dataclass(frozen=True, slots=True)
class Placement:
    """By partition: the owner's name that the plan in force leads to, and the number of the replica to serve it now.

    They differ while the owner is not ready: until then the replica before keeps the partition (make before break).
    """

    aim: dict[int, str]
    now: tuple[int, ...]


def first_placement(partitions: int, members: Sequence[Member]) -> Placement:
    """Return where everything is at the start of a run."""
    aim = assign(partitions, [member.name for member in members], {})
    number = {member.name: member.number for member in members}
    return Placement(aim, tuple(number[aim[partition]] for partition in range(partitions)))


def follow_plan(before: Placement, plan: Plan) -> Placement:
    """Return `before` with the owners that a new plan names. Raises ValueError for owners that are not its replicas."""
    if plan.assignment is None:
        return before
    strangers = sorted(set(plan.assignment.values()) - set(plan.replicas))
    if strangers:
        raise ValueError(f"the plan gives partitions to {', '.join(strangers)}, which it does not name as replicas")
    beyond = sorted(set(plan.assignment) - before.aim.keys())
    if beyond:
        raise ValueError(f"the plan names partition {beyond[0]} of {len(before.aim)}")
    return Placement(before.aim | dict(plan.assignment), before.now)


def place_partitions(
    before: Placement, members: Sequence[Member], *, counted: bool, dying: frozenset[int], dead: frozenset[int]
) -> Placement:
    """Return who shall serve now, given who is ready.

    members: those that are planned. counted: the plan states a count only, so the assignor places the partitions over
    the ready ones. dying, dead: numbers of replicas that died, before and after the others know it. What the plan gives
    to nobody who is there, and what the dead have left, goes to the ready replica with the fewest partitions.
    """
    ready = [member for member in members if member.ready]
    names = [member.name for member in ready]
    if not ready:
        return before
    partitions = len(before.now)
    aim = assign(partitions, names, before.aim) if counted else dict(before.aim)
    present = {member.name: member for member in members}
    serving: dict[int, str] = {}
    now = list(before.now)
    homeless = []
    for partition in range(partitions):
        owner = present.get(aim[partition])
        if owner is not None and owner.ready:
            now[partition] = owner.number
            serving[partition] = owner.name
        elif now[partition] in dead or (owner is None and now[partition] not in dying):
            homeless.append(partition)
    spread_by_count(serving, homeless, names)
    for partition in homeless:
        now[partition] = present[serving[partition]].number
        if aim[partition] not in present:
            aim[partition] = serving[partition]
    return Placement(aim, tuple(now))


def assign(partitions: int, replicas: Sequence[str], owners: Owners) -> dict[int, str]:
    """Return partition → replica under a plan that states a count only, as Kafka's sticky and uniform assignors do.

    Counts differ by one at most, with the fewest moves that this allows. Where it does not divide, those that hold most
    now may keep one more than the others: each of them saves a move. owners: who has what now, the gone included.
    """
    each, more = divmod(partitions, len(replicas))
    held: dict[str, list[int]] = {name: [] for name in replicas}
    for partition in range(partitions):
        if (owner := owners.get(partition)) in held:
            held[owner].append(partition)
    by_size = sorted(replicas, key=lambda name: -len(held[name]))  # stable: then the oldest first
    room = {name: each + (index < more) for index, name in enumerate(by_size)}
    placed = {partition: name for name in replicas for partition in held[name][: room[name]]}
    spread_by_count(placed, (partition for partition in range(partitions) if partition not in placed), replicas, room)
    return dict(sorted(placed.items()))
