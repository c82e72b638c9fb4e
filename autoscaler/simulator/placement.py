"""From plans, readiness and deaths to owners: who shall have what in the end, and who shall have it now. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from autoscaler.model import Plan
from autoscaler.simulator.assignors import assign, spread_by_count
from autoscaler.simulator.members import Member
from autoscaler.simulator.settings import Assignor


@dataclass(frozen=True, slots=True)
class Placement:
    """By partition: the owner's name that the plan in force leads to, and the number of the replica to serve it now.

    They differ while the owner is not ready: until then the replica before keeps the partition (make before break).
    """

    aim: dict[int, str]
    now: tuple[int, ...]


def first_placement(assignor: Assignor, partitions: int, members: Sequence[Member]) -> Placement:
    """Return where everything is at the start of a run."""
    aim = assign(assignor, partitions, [member.name for member in members], {})
    number = {member.name: member.number for member in members}
    return Placement(aim, tuple(number[aim[partition]] for partition in range(partitions)))


def aimed_at(before: Placement, plan: Plan) -> Placement:
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


def placed(
    before: Placement, members: Sequence[Member], *, by: Assignor | None, dying: frozenset[int], dead: frozenset[int]
) -> Placement:
    """Return who shall serve now, given who is ready.

    members: those that are planned. by: the assignor that places the partitions, over the ready ones; None: a plan
    does. dying, dead: numbers of replicas that died, before and after the others know it. What the plan gives to
    nobody who is there, and what the dead have left, goes to the ready replica with the fewest partitions.
    """
    ready = [member for member in members if member.ready]
    names = [member.name for member in ready]
    if not ready:
        return before
    partitions = len(before.now)
    aim = dict(before.aim) if by is None else assign(by, partitions, names, before.aim)
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


def moved(before: Placement, after: Placement) -> int:
    """Count the partitions whose owner differs in the end."""
    return sum(before.aim[partition] != owner for partition, owner in after.aim.items())
