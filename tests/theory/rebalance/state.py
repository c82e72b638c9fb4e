"""What is modelled: replicas, the broker's view of the group, one partition's offsets. Immutable, hashable.

Sets of partitions and of replicas are bit masks. Generations are stored as ages (the broker's generation minus the
member's), so that a group that has been through any number of rounds comes back to the same states.

Offsets never steer the protocol, so one partition with events at a time (`Scenario.tracked`) shows what all would.
A pause (SIGSTOP) needs no state of its own: a paused replica is one that takes no steps while the others do.

Left out: a grace for absent replicas, a member that leaves because the plan no longer names it, restarts of the broker.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from contracts.plan import PlanRecord

NEVER = -1
OLD = 3
"""Ages from here on are one: which of two claims is older matters only where members claim the same. None do."""
NOBODY = -1


class Quick(IntEnum):
    """Hashes as the number it is: states are hashed by the million."""

    __hash__ = int.__hash__


class Phase(Quick):
    """Where a replica stands."""

    DOWN = 0
    """Not started yet."""
    OUT = 1
    """Runs, is no member, owns nothing, is about to join."""
    JOINING = 2
    """From JoinGroup until the answer of SyncGroup is read. Serves what it has, commits nothing."""
    MEMBER = 3
    DEAD = 4
    LEFT = 5


class Group(Quick):
    """The broker's states of a group."""

    EMPTY = 0
    PREPARING = 1
    """Waits until every known member has joined."""
    COMPLETING = 2
    """Waits for the leader's assignment."""
    STABLE = 3


class Mail(NamedTuple):
    """A SyncGroup answer that its member has not read yet."""

    partitions: int
    given: int
    given_at: int
    epoch: int
    again: bool
    follow_ups: int


class Node(NamedTuple):
    """One replica."""

    phase: Phase
    known: int = 0
    """Newest plan epoch it has read."""
    epoch: int = 0
    """Plan epoch of its last assignment."""
    age: int = NEVER
    """Generations since its last assignment."""
    open: int = 0
    """Partitions it serves."""
    closing: int = 0
    """Partitions taken from it, whose event in flight is not finished."""
    given: int = 0
    """Partitions given up since its last assignment (eager: those it held before it joined)."""
    given_at: int = 0
    at: int = 0
    """Next event of the tracked partition, while it has it."""
    follows: bool = False
    follow_ups: int = 0
    draining: bool = False
    told: bool = False
    """Its last introduction said that it is draining."""
    mail: Mail | None = None


class State(NamedTuple):
    """Everything at one moment."""

    group: Group
    leader: int
    ids: int
    """Members that the broker knows."""
    joined: int
    """Those of them that wait in the present round."""
    nodes: tuple[Node, ...]
    committed: int
    served: int
    """Events of the tracked partition that members have served, without a gap from the first."""
    faults: int
    """Crashes, lost sessions and failed commits still to come."""
    mishaps: int
    """Slow events, lost answers and drain time-outs still to come: they must not even repeat an event."""


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """What may happen."""

    names: tuple[str, ...]
    partitions: int
    plans: tuple[PlanRecord, ...]
    """By epoch, from 1."""
    at_start: int
    """Members that have carried out the first plan when the story begins; the others start at any time."""
    tracked: int = 0
    events: int = 2
    faults: int = 0
    mishaps: int = 0
    may_drain: int = 0
    eager: bool = False

    @property
    def newest(self) -> int:
        return len(self.plans)


def bits(mask: int) -> list[int]:
    """Return the members of a mask, ascending."""
    return [each for each in range(mask.bit_length()) if mask >> each & 1]


def mask(members: object) -> int:
    """Return the mask of `members`."""
    return sum(1 << each for each in members)  # type: ignore[attr-defined]
