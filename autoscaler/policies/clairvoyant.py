"""The schedule of the bound, carried out: it is told the packing of every second before the run begins."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autoscaler.model import Decision, GroupObservation
from autoscaler.packing.bins import Bin, Item
from autoscaler.policies.planning import change, hold, items_of, plan_for, unowned
from autoscaler.policies.settings import PolicySettings
from contracts.settings import Rule, Settings, Values, setting

Packing = tuple[tuple[int, ...], ...]
"""The partitions of each replica. Partitions that it leaves out hold nothing in that second."""


@dataclass(frozen=True, kw_only=True)
class ClairvoyantSettings(Settings):
    """What it is told. Raises ValueError for a schedule that is no list of packings."""

    schedule: tuple[Packing, ...]
    """The packing of second 0, 1, … of the run; the last one holds from then on. Told with the bound."""
    ahead_s: float = setting(0.0, "s", least=0)
    """The packing in force after a tick at t is that of second ⌊t + ahead_s⌋. 0 suits ticks at whole seconds or soon
    after; one that comes shortly before the next second wants to be ahead."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return what makes a schedule one."""
        return (("schedule", _bad_schedule),)


def _bad_schedule(values: Values) -> str | None:
    if not values["schedule"]:
        return "must hold a packing for second 0 at least"
    problems = ((second, _problem(packing)) for second, packing in enumerate(values["schedule"]))
    return next((f"second {second}: {problem}" for second, problem in problems if problem), None)


class Clairvoyant:
    """Each second's packing with few moves. Meant for a world where start-up and handover are free.

    Deterministic and without memory: the packing follows from the time of the observation, which counts from the start
    of the run.
    """

    name = "clairvoyant"

    def __init__(
        self, schedule: Sequence[Packing], settings: PolicySettings | None = None, *, ahead_s: float = 0.0
    ) -> None:
        """Raises ValueError as ClairvoyantSettings does."""
        self.options = ClairvoyantSettings(schedule=tuple(schedule), ahead_s=ahead_s)
        self.settings = settings or PolicySettings()

    def decide(self, observation: GroupObservation) -> Decision:
        """Ask for the packing of the second that the tick is in."""
        now = observation.requested_replicas
        second = min(max(0, math.floor(observation.at_s + self.options.ahead_s)), len(self.options.schedule) - 1)
        packing = self.options.schedule[second] or ((),)
        why = f"second {second} needs {len(packing)}"
        if len(packing) == now and not unowned(observation) and _in_force(observation, packing):
            return hold(observation, f"{why}: hold {now}")
        bins = _bins(observation, packing)
        return change(observation, plan_for(observation, bins, self.settings.replica_prefix), why)


def _in_force(observation: GroupObservation, packing: Packing) -> bool:
    """Tell whether each group has a replica of its own already."""
    known = {load.partition for load in observation.partitions}
    owners = [{observation.assignment[partition] for partition in group if partition in known} for group in packing]
    return all(len(names) <= 1 for names in owners) and sum(map(len, owners)) == len(set().union(*owners))


def _bins(observation: GroupObservation, packing: Packing) -> tuple[Bin, ...]:
    """Return the packing as bins; partitions that it leaves out stay with a neighbour, or join the smallest bin."""
    items = {item.partition: item for item in items_of(observation)}
    bins = [[items.pop(partition) for partition in group if partition in items] for group in packing]
    where = {
        observation.assignment.get(item.partition): index for index, content in enumerate(bins) for item in content
    }
    for item in items.values():
        owner = observation.assignment.get(item.partition)
        smallest = min(range(len(bins)), key=lambda index: (len(bins[index]), index))
        bins[where.get(owner, smallest) if owner is not None else smallest].append(item)
    return tuple(_ordered(bins))


def _ordered(bins: Sequence[Sequence[Item]]) -> Iterator[Bin]:
    return (Bin(tuple(sorted(content, key=lambda item: item.partition))) for content in bins)


def _problem(packing: object) -> str:
    """Say why `packing` is none; empty text when it is."""
    if not isinstance(packing, tuple) or not all(isinstance(group, tuple) for group in packing):
        return f"{packing!r} is no list of groups of partitions"
    partitions = [partition for group in packing for partition in group]
    if not all(isinstance(partition, int) and partition >= 0 for partition in partitions):
        return f"{packing!r} holds what is no partition number"
    return "a partition is in two groups" if len(set(partitions)) < len(partitions) else ""
