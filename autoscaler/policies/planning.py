"""Turns bins or replica counts into plans and plans into decisions. Records counts. Used by all policies and guards."""

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
"""Tolerance of times: 0.1 s + 15 s must count as 15.1 s despite rounding."""


def items_of(observation: GroupObservation, ahead_s: float = 0.0) -> tuple[Item, ...]:
    """Return the partitions as items, with the lag after a pause of `ahead_s`: lag + λ·ahead_s."""
    return tuple(
        Item(load.partition, load.arrival_rate, load.lag + load.arrival_rate * ahead_s)
        for load in observation.partitions
    )


def plan_for(observation: GroupObservation, bins: Sequence[Bin], prefix: str, *, at_least: int = 0) -> Plan:
    """Return the plan for `bins` with few moves. At least `at_least` replicas stay, even without partitions."""
    padded = [*bins, *[Bin(())] * (at_least - len(bins))]
    ready_first = [replica.name for replica in sorted(observation.replicas, key=lambda r: not r.surely_ready)]
    names = name_bins(padded, observation.assignment, ready_first, prefix)
    stay = [name for name in observation.replica_names if name in names]
    join = [name for name in names if name not in observation.replica_names]
    owners = {item.partition: name for bin_, name in zip(padded, names, strict=True) for item in bin_.items}
    return Plan((*stay, *join), dict(sorted(owners.items())))


def plan_for_count(observation: GroupObservation, replicas: int, prefix: str) -> Plan:
    """Return a plan with a count only. The newest requested replicas leave first."""
    names = observation.replica_names
    new = islice(fresh_names(prefix, {*names, *observation.assignment.values()}), max(0, replicas - len(names)))
    return Plan((*names[:replicas], *new), None)


def no_change(observation: GroupObservation, reason: str, *, counts_only: bool = False) -> Decision:
    """Return the decision to keep the plan in force."""
    assignment = None if counts_only else observation.assignment
    return Decision(Action.NO_CHANGE, Plan(observation.replica_names, assignment), reason)


def scale_to(observation: GroupObservation, replicas: int, prefix: str, why: str) -> Decision:
    """Return the decision for a count. If no partition has an owner yet, the group's assignor places them all."""
    now = observation.requested_replicas
    if replicas != now:
        return change(observation, plan_for_count(observation, replicas, prefix), why)
    if observation.assignment:
        return no_change(observation, f"{why}: no change at {now}", counts_only=True)
    unplaced = f"no partition has an owner yet: the group's assignor places all on {now}"
    return Decision(Action.REASSIGN, plan_for_count(observation, now, prefix), unplaced)


def change(observation: GroupObservation, plan: Plan, why: str) -> Decision:
    """Return the decision for `plan`. The action follows from what the plan changes."""
    now = observation.requested_replicas
    if plan.count != now:
        action = Action.UP if plan.count > now else Action.DOWN
        return Decision(action, plan, f"{why}: {action} {now} → {plan.count}")
    if plan.assignment is None:
        return Decision(Action.NO_CHANGE, plan, f"{why}: no change at {now}")
    before, after = dict(observation.assignment), dict(plan.assignment)
    moves = sum(map(ne, map(before.get, after), after.values()))
    if not moves:
        return Decision(Action.NO_CHANGE, plan, f"{why}: no change, no other placement on {now} is better")
    return Decision(Action.REASSIGN, plan, f"{why}: reassign {moves} of {len(plan.assignment)} partitions")


def describe_unowned(observation: GroupObservation) -> str:
    """Return a text with the partitions that no requested replica owns; empty if there is none."""
    names, owners = set(observation.replica_names), observation.assignment
    without = [load.partition for load in observation.partitions if owners.get(load.partition) not in names]
    if not without:
        return ""
    listed = ", ".join(map(str, without[:5])) + (", …" if len(without) > 5 else "")
    return f"{len(without)} of {len(observation.partitions)} partitions have no owner ({listed})"


def busiest(observation: GroupObservation, assignment: Mapping[int, str]) -> float:
    """Return λ/μ of the busiest replica with these owners. This is the share of its time that its events need."""
    rates = {replica.name: replica.service_rate or observation.service_rate for replica in observation.replicas}
    load_of: dict[str, float] = {}
    for load in observation.partitions:
        owner = assignment.get(load.partition, "")
        load_of[owner] = load_of.get(owner, 0.0) + load.arrival_rate
    return max((rate / rates.get(owner, observation.service_rate) for owner, rate in load_of.items()), default=0.0)


def replicas_for(demand: float, capacity: float) -> int:
    """Return ⌈demand/capacity⌉, at least 1, with a tolerance of rounding: 180.00000000000003/90 is 2, not 3."""
    return max(1, math.ceil(demand / capacity * (1 - 1e-9)))


def number(value: float) -> str:
    """Format a number for a reason, with one decimal unless it is whole (89.7, 113)."""
    return f"{value:.1f}".removesuffix(".0")


class WantedCounts:
    """Replica counts that were wanted within `window_s`, and the group's count at the first call."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._wanted: deque[tuple[float, int]] = deque()

    def note(self, observation: GroupObservation, count: int) -> tuple[int, int]:
        """Add the present wanted count. Return the minimum and maximum within the window."""
        at_s = observation.at_s
        if not self._wanted:
            self._wanted.append((at_s, observation.requested_replicas))
        self._wanted.append((at_s, count))
        while at_s - self._wanted[0][0] > self._window_s - SAME_S and len(self._wanted) > 1:
            self._wanted.popleft()
        counts = [wanted for _, wanted in self._wanted]
        return min(counts), max(counts)

    def forget(self) -> None:
        """Remove all counts."""
        self._wanted.clear()


class ScalingHistory:
    """Changes of the replica count within `memory_s`, as observed: a count that a policy wants may be vetoed.

    A change gets the time of the tick before the tick that observes it.
    """

    def __init__(self, memory_s: float) -> None:
        self._memory_s = memory_s
        self._changes: deque[tuple[float, int]] = deque()
        self._last: tuple[float, int] | None = None
        self.last_s = -math.inf
        """Time of the latest change, even if it is older than `memory_s`."""

    def observe(self, observation: GroupObservation) -> None:
        """Add the replica count of one tick."""
        at_s, count = observation.at_s, observation.requested_replicas
        if self._last is not None and count != self._last[1]:
            self.last_s = self._last[0]
            self._changes.append((self.last_s, count - self._last[1]))
        self._last = at_s, count
        while self._changes and self._changes[0][0] <= at_s - self._memory_s:
            self._changes.popleft()

    def since(self, since_s: float) -> int:
        """Return the net number of replicas added after `since_s`."""
        return sum(change for at_s, change in self._changes if at_s > since_s)
