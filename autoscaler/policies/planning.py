"""From bins or counts to plans, from plans to decisions; when counts changed. Shared by all policies and guards."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import ne
from typing import Final

from autoscaler.model import Action, Decision, GroupObservation, Plan
from autoscaler.packing.bins import Bin, Item
from autoscaler.packing.owners import fresh_names, name_bins

SAME_S: Final = 1e-6
"""Times that differ by less are the same: 15 s after 0.1 s is 15.1 s, whatever floating point says."""


def items_of(observation: GroupObservation, ahead_s: float = 0.0) -> tuple[Item, ...]:
    """Return the partitions as items, with the lag they will have after `ahead_s` of standing still: lag + λ·ahead."""
    return tuple(
        Item(load.partition, load.arrival_rate, load.lag + load.arrival_rate * ahead_s)
        for load in observation.partitions
    )


def plan_for(observation: GroupObservation, bins: Sequence[Bin], prefix: str, *, at_least: int = 0) -> Plan:
    """Return the plan that carries out `bins` with few moves; replicas up to `at_least` stay, empty if need be."""
    padded = [*bins, *[Bin(())] * (at_least - len(bins))]
    ready_first = [one.name for one in sorted(observation.replicas, key=lambda one: not one.surely_ready)]
    names = name_bins(padded, observation.assignment, ready_first, prefix)
    stay = [name for name in observation.replica_names if name in names]
    join = [name for name in names if name not in observation.replica_names]
    owners = {item.partition: name for one, name in zip(padded, names, strict=True) for item in one.items}
    return Plan((*stay, *join), dict(sorted(owners.items())))


def plan_for_count(observation: GroupObservation, replicas: int, prefix: str) -> Plan:
    """Return a plan that states a count only. The newest requested leave first."""
    names = observation.replica_names
    new = islice(fresh_names(prefix, {*names, *observation.assignment.values()}), max(0, replicas - len(names)))
    return Plan((*names[:replicas], *new), None)


def no_change(observation: GroupObservation, reason: str, *, counts_only: bool = False) -> Decision:
    """Keep what is in force."""
    assignment = None if counts_only else observation.assignment
    return Decision(Action.HOLD, Plan(observation.replica_names, assignment), reason)


def scale_to(observation: GroupObservation, replicas: int, prefix: str, why: str) -> Decision:
    """Return the decision for a count. Where nobody owns a partition yet, the group's assignor places them all."""
    now = observation.requested_replicas
    if replicas != now:
        return change(observation, plan_for_count(observation, replicas, prefix), why)
    if observation.assignment:
        return no_change(observation, f"{why}: hold {now}", counts_only=True)
    unplaced = f"nobody owns a partition yet: the group's assignor places all on {now}"
    return Decision(Action.REASSIGN, plan_for_count(observation, now, prefix), unplaced)


def change(observation: GroupObservation, plan: Plan, why: str) -> Decision:
    """Return the decision for `plan`: the action follows from what it changes, and is a hold if nothing."""
    now = observation.requested_replicas
    if plan.count != now:
        action = Action.UP if plan.count > now else Action.DOWN
        return Decision(action, plan, f"{why}: {action} {now} → {plan.count}")
    if plan.assignment is None:
        return Decision(Action.HOLD, plan, f"{why}: hold {now}")
    before, after = dict(observation.assignment), dict(plan.assignment)
    moved = sum(map(ne, map(before.get, after), after.values()))
    if not moved:
        return Decision(Action.HOLD, plan, f"{why}: hold, no other placement on {now} is better")
    return Decision(Action.REASSIGN, plan, f"{why}: reassign {moved} of {len(plan.assignment)} partitions")


def describe_unowned(observation: GroupObservation) -> str:
    """Say which partitions have no owner among the requested replicas; empty text when all have."""
    names = set(observation.replica_names)
    without = [
        one.partition for one in observation.partitions if observation.assignment.get(one.partition) not in names
    ]
    if not without:
        return ""
    listed = ", ".join(map(str, without[:5])) + (", …" if len(without) > 5 else "")
    return f"{len(without)} of {len(observation.partitions)} partitions have no owner ({listed})"


def busiest(observation: GroupObservation, assignment: Mapping[int, str]) -> float:
    """Return λ/μ of the busiest replica if these were the owners: the share of its time that it would need."""
    rates = {one.name: one.service_rate or observation.service_rate for one in observation.replicas}
    held: dict[str, float] = {}
    for load in observation.partitions:
        owner = assignment.get(load.partition, "")
        held[owner] = held.get(owner, 0.0) + load.arrival_rate
    return max((rate / rates.get(owner, observation.service_rate) for owner, rate in held.items()), default=0.0)


def replicas_for(demand: float, capacity: float) -> int:
    """Return ⌈demand/capacity⌉, at least 1; 180.00000000000003/90 is 2, not 3."""
    return max(1, math.ceil(demand / capacity * (1 - 1e-9)))


def number(value: float) -> str:
    """Write a figure for a reason: one decimal, none where it is whole (89.7, 113)."""
    return f"{value:.1f}".removesuffix(".0")


class WantedCounts:
    """How many replicas were wanted within `window_s`; the count at the first look is taken to have been wanted."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._wishes: deque[tuple[float, int]] = deque()

    def note(self, observation: GroupObservation, count: int) -> tuple[int, int]:
        """Remember that `count` are wanted now; return the fewest and the most of those less than the window old."""
        at_s = observation.at_s
        if not self._wishes:
            self._wishes.append((at_s, observation.requested_replicas))
        self._wishes.append((at_s, count))
        while at_s - self._wishes[0][0] > self._window_s - SAME_S and len(self._wishes) > 1:
            self._wishes.popleft()
        counts = [wished for _, wished in self._wishes]
        return min(counts), max(counts)

    def forget(self) -> None:
        """Begin anew."""
        self._wishes.clear()


class ScalingHistory:
    """When the count of replicas changed, as it was seen: what a policy wanted may have been vetoed.

    Remembers changes for `memory_s`, each at the tick before the one at which it shows.
    """

    def __init__(self, memory_s: float) -> None:
        self._memory_s = memory_s
        self._changes: deque[tuple[float, int]] = deque()
        self._seen: tuple[float, int] | None = None
        self.last_s = -math.inf
        """When the count changed last, however long ago."""

    def observe(self, observation: GroupObservation) -> None:
        """Take in one tick."""
        at_s, count = observation.at_s, observation.requested_replicas
        if self._seen is not None and count != self._seen[1]:
            self.last_s = self._seen[0]
            self._changes.append((self.last_s, count - self._seen[1]))
        self._seen = at_s, count
        while self._changes and self._changes[0][0] <= at_s - self._memory_s:
            self._changes.popleft()

    def since(self, since_s: float) -> int:
        """Return how many more replicas came than left after `since_s`."""
        return sum(change for at_s, change in self._changes if at_s > since_s)
