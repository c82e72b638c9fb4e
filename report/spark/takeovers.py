"""Why a partition changed its owner: by a plan, or because somebody died. Plain Python on the journal."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.journal import PlanWritten, ReplicaChange, ReplicaChanged

NOTICED_WITHIN_US: Final = 15_000_000
"""A death may be written down that long after an heir took over: a session ends by itself, a hung process is killed."""
ANYBODY: Final = ""
"""Owner that a plan names which leaves placing to the group."""
GONE: Final = frozenset({ReplicaChange.DRAINED, ReplicaChange.LEFT})


@dataclass(frozen=True, slots=True)
class Takeover:
    """One partition that another replica served from then on."""

    partition: int
    old: str
    new: str
    left_us: int
    """Last event done at the old owner."""
    came_us: int
    """First event received at the new one."""


def deaths(changes: Iterable[ReplicaChanged]) -> dict[str, list[int]]:
    """Return replica → when it died, µs, in order."""
    found: dict[str, list[int]] = {}
    for change in changes:
        if change.change is ReplicaChange.DIED:
            found.setdefault(change.replica, []).append(change.at_us)
    return {replica: sorted(times) for replica, times in found.items()}


class Judge:
    """Tells an heir from a handover."""

    def __init__(self, changes: Sequence[ReplicaChanged], plans: Sequence[PlanWritten]) -> None:
        self._deaths = deaths(changes)
        self._gone = {(change.replica, change.at_us) for change in changes if change.change in GONE}
        self._placed = _placements(plans)

    def by_death(self, one: Takeover) -> bool:
        """Return whether the old owner was dead, or evicted, when the partition changed hands.

        Dead: the journal says that it died between its last event there and the heir's first. Evicted: neither of the
        two newest plans names the heir, so that the group itself gave the partition away, and the old owner had not
        left in good order. Where plans place nothing, a death that was written down soon afterwards counts.
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
