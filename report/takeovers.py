"""Who served which partition, when; and whether it was handed over or taken from the dead."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from contracts.journal import PlanWritten, ReplicaChange, ReplicaChanged
from report.table import NONE, Groups, Ints, Table, before, begins, coalesce, running_max

NOTICED_WITHIN_US: Final = 15_000_000
"""A death may be written down so long after a successor took over: a session ends late, a hung process is killed."""
ANYBODY: Final = ""
"""Owner that a plan names which leaves placing to the group."""
GONE: Final = frozenset({ReplicaChange.DRAINED, ReplicaChange.LEFT})


@dataclass(frozen=True, slots=True)
class Takeover:
    """One partition that another replica served from then on. Times are µs since the epoch."""

    partition: int
    old: str
    new: str
    left_us: int
    """Last event done at the old owner."""
    came_us: int
    """First event received at the new one."""
    epoch: int | None = None
    """Of the plan under which the new owner's first event was served."""
    late: int = 0
    """Events of the new owner's stay that were late."""
    sent_us: int | None = None
    """When the first event that the new owner received had been handed on to the topic; null: not looked up."""


def deaths(changes: Iterable[ReplicaChanged]) -> dict[str, list[int]]:
    """Return replica → when it died, µs, in order."""
    found: dict[str, list[int]] = {}
    for change in changes:
        if change.change is ReplicaChange.DIED:
            found.setdefault(change.replica, []).append(change.at_us)
    return {replica: sorted(times) for replica, times in found.items()}


class Deaths:
    """Tells whom a partition was taken over from: a dead replica, or one that handed it over."""

    def __init__(self, changes: Sequence[ReplicaChanged], plans: Sequence[PlanWritten]) -> None:
        self._deaths = deaths(changes)
        self._gone = {(change.replica, change.at_us) for change in changes if change.change in GONE}
        self._placed = _placements(plans)

    def by_death(self, one: Takeover) -> bool:
        """Return whether the old owner was dead, or evicted, when the partition changed hands.

        Dead: the journal says that it died between its last event there and the successor's first. Evicted: neither of
        the two newest plans names the successor, so that the group itself gave the partition away, and the old owner
        had not left in good order. Where plans place nothing, a death that was written down soon afterwards counts.
        """
        died = self._deaths.get(one.old, ())
        if any(one.left_us <= at_us <= one.came_us for at_us in died):
            return True
        times, owners = self._placed.get(one.partition, ((), ()))
        known = bisect_right(times, one.came_us)
        newest = owners[max(0, known - 2) : known]
        if not newest or ANYBODY in newest:
            return any(one.left_us <= at_us <= one.came_us + NOTICED_WITHIN_US for at_us in died)
        if one.new in newest:
            return False
        return not any(replica == one.old and at_us <= one.came_us for replica, at_us in self._gone)


def _placements(plans: Sequence[PlanWritten]) -> Mapping[int, tuple[Sequence[int], Sequence[str]]]:
    """Return partition → times of the plans that place it, or leave that to the group, and whom they name."""
    placed: dict[int, tuple[list[int], list[str]]] = {
        int(partition): ([], []) for plan in plans for partition in plan.assignment or {}
    }
    for plan in sorted(plans, key=lambda plan: plan.at_us):
        named = None if plan.assignment is None else {int(one): who for one, who in plan.assignment.items()}
        for partition, (times, owners) in placed.items():
            if named is None or partition in named:
                times.append(plan.at_us)
                owners.append(ANYBODY if named is None else named[partition])
    return placed


def stays(served: Table, deaths: Mapping[str, Sequence[int]]) -> Table:
    """Return the rows of `served`, by time, with the stay that each belongs to.

    A stay is one replica (one life of it) serving a partition without another in between. Added are old (replica
    before), left_us (its last event done), came_us (first event received in this stay); unknown for the first stay of a
    partition, and where two replicas served it at the same time: then nothing was handed over.
    deaths: replica → when it died, µs. Exact, unless a partition leaves and returns in one second under one epoch.
    """
    order = ("partition", "first_done_us", "last_done_us", "replica", "epoch")
    rows = served.where(np.lexsort([served[name] for name in reversed(order)]))
    stay = np.cumsum(begins(rows["partition"], rows["replica"], _life(rows, deaths))) - 1
    each = Groups(stay)
    partition, who, begin_us = (each.first(rows[name]) for name in ("partition", "replica", "first_done_us"))
    first_us = each.min(coalesce(rows["first_received_us"], rows["first_done_us"]))
    new = begins(partition)
    left_us = before(running_max(each.max(rows["last_done_us"]), new), new)
    over = (left_us != NONE) & (left_us <= begin_us)
    old = np.where(over, np.append(-1, who[:-1]), -1)
    came_us = np.where(over, np.maximum(first_us, left_us), NONE)
    return rows.plus(stay=stay, old=old[stay], left_us=np.where(over, left_us, NONE)[stay], came_us=came_us[stay])


def takeovers(stays: Table) -> list[Takeover]:
    """Return the changes of hands, by partition and time."""
    each = Groups(stays["stay"])
    late = each.sum(stays["late"])
    columns = ("partition", "left_us", "came_us", "epoch")
    partition, left_us, came_us, epoch = (each.first(stays[name]).tolist() for name in columns)
    names = [(stays.name(number) or "" for number in each.first(stays[which])) for which in ("old", "replica")]
    epochs = (None if number == NONE else number for number in epoch)
    every = map(Takeover, partition, *names, left_us, came_us, epochs, late.tolist())
    return [one for one in every if one.left_us != NONE]


def _life(rows: Table, deaths: Mapping[str, Sequence[int]]) -> Ints:
    life = np.zeros(len(rows["replica"]), np.int64)
    for number, times in zip(rows.numbers(list(deaths)), deaths.values(), strict=True):
        mine = (rows["replica"] == number) & (number >= 0)
        life[mine] = np.searchsorted(times, rows["first_done_us"][mine], side="left")
    return life
