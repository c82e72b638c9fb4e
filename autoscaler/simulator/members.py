"""The replicas of a simulated group: who was requested, who is ready, who costs money."""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.journal import ReplicaChange, ReplicaChanged


@dataclass(slots=True)
class Member:
    """One life of a replica. A name that is requested again after its end is another one."""

    name: str
    number: int
    """At the engine."""
    ready: bool = False
    planned: bool = True
    """Named by the newest plan; else it is being removed."""
    unplanned_us: int = 0
    """When a plan left it out, if one did."""


class Members:
    """All replicas that cost money, in the order of their requests, and the record of those that ever did."""

    def __init__(self, *, keep: bool = True) -> None:
        """keep: off, and no changes are recorded."""
        self._keep = keep
        self._leaving: list[Member] = []
        self._present: dict[str, Member] = {}
        self.names: list[str] = []
        """By replica number."""
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

    @property
    def leaving(self) -> list[Member]:
        """Being removed."""
        return [*self._leaving]

    def request(self, name: str, number: int, at_us: int) -> Member:
        """Add a replica; from now on it costs money. Its number must be the next one."""
        assert number == len(self.names), f"replica {number} is the {len(self.names) + 1}th"
        member = self._present[name] = Member(name, number)
        self.names.append(name)
        self._note(member, ReplicaChange.REQUESTED, at_us)
        return member

    def plan(self, names: Sequence[str], at_us: int) -> None:
        """Take note of who shall stay."""
        wanted = set(names)
        for member in self._present.values():
            if member.planned and member.name not in wanted:
                member.unplanned_us = at_us
            member.planned = member.name in wanted
        self._leaving = [member for member in self._present.values() if not member.planned]

    def make_ready(self, member: Member, at_us: int) -> None:
        """Take note that it could serve now."""
        member.ready = True
        self._note(member, ReplicaChange.READY, at_us)

    def remove(self, member: Member, at_us: int, why: ReplicaChange) -> None:
        """Take it out: it costs nothing any more. why: LEFT or DIED."""
        del self._present[member.name]
        if not member.planned:
            self._leaving.remove(member)
        self._note(member, why, at_us)

    def _note(self, member: Member, change: ReplicaChange, at_us: int) -> None:
        if self._keep:
            self.changes.append(ReplicaChanged(at_us=at_us, replica=member.name, change=change))
        if self.requested and self.requested[-1][0] == at_us:
            self.requested.pop()
        if not self.requested or self.requested[-1][1] != len(self._present):
            self.requested.append((at_us, len(self._present)))
