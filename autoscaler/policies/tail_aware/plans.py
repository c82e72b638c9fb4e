"""The plans that are compared: the present one, and others with few moves. Predicts their late events and cost."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import Flags, Floats, Ints, compiled
from autoscaler.model import Alternative
from autoscaler.packing.few_moves import place_on
from autoscaler.packing.least_loaded import fill_level
from autoscaler.policies.planning import number
from autoscaler.policies.tail_aware import queues
from autoscaler.policies.tail_aware.memory import Allowance
from autoscaler.policies.tail_aware.queues import Grid, Group, Paths
from contracts.settings import Settings, setting

MAX_COUNTS: Final = 6
"""Replica counts that are considered at first; fewer in groups with over 1,000 partitions."""
SLACKS: Final = (0.0, 0.1, 0.3)
"""Room of a replica above the lowest possible fill level. More room needs fewer moves."""
PINNED: Final = 1e9
"""Weight of a partition whose handover is under way: another move would restart its pause."""


@dataclass(frozen=True, kw_only=True)
class TailAwareSettings(Settings):
    """Prices are in seconds of a replica."""

    price: float = setting(0.05, "share", above=0)
    """Price of late events. As many as the SLO allows (1 − q) cost this share of the work; more, up to sixteen times
    as much."""
    start_price_s: float = setting(1.0, "s", least=0)
    """Cost of starting a replica, in replica-seconds."""
    change_price_s: float = setting(0.1, "s", least=0)
    """Cost of a rebalance, in replica-seconds."""
    move_price_s: float = setting(0.02, "s", least=0)
    """Cost of moving a partition, in replica-seconds."""
    keep_s: float = setting(300.0, "s", least=0)
    """Longest time that replicas are kept after a peak if a start takes longer than the latency target."""
    lead_factor: float = setting(6.5, least=0)
    """Handovers may begin up to lead_factor·t_r early, when fewer events are affected."""


Placement = tuple[Ints, tuple[int, ...]]
"""A plan: the owner of each partition, and the replicas."""


class Situation(NamedTuple):
    """The data by which plans are compared."""

    group: Group
    waiting: Floats
    paths: Paths
    grid: Grid
    paid_s: float
    """Time for which the replicas of a plan are paid."""
    interval_s: float
    least: int
    """Replicas to keep."""

    def lasts(self, owners: Ints) -> bool:
        """Return whether no replica has more events in an interval than it can serve in that time."""
        load, held = np.bincount(owners, self.paths.sizes), np.bincount(owners)
        return bool((load <= self.group.rates[: len(load)] * self.interval_s)[held > 1].all())

    def replayed(self, owners: Ints, paths: Floats, due_s: float = 0.0) -> Floats:
        """Return the late events by kind, path and replica under a plan: those due until `due_s`, and all."""
        grid, events = self.grid._replace(saved_s=due_s, extrapolate=False), queues.joined(self.waiting, paths)
        return queues.late_by_replica(events, len(self.waiting), owners, np.arange(len(owners)), self.group, grid)


class Candidate(NamedTuple):
    """A plan with its prediction."""

    owners: Ints
    replicas: tuple[int, ...]
    late: float
    """Expected late events."""
    in_sla: float
    """Expected share of events in time."""
    late_cost: float
    cost: float
    moved: int

    def __str__(self) -> str:
        count = len(self.replicas)
        replicas = f"{count} replica" + "s" * (count != 1)
        return f"{replicas} {100 * self.in_sla:.4g} % in time at cost {number(self.cost)}"


class Comparison(NamedTuple):
    """A comparison of plans. It can be repeated from its fields."""

    now: Situation
    options: TailAwareSettings
    allowance: Allowance
    early: bool
    """Whether the decision is made between two ticks, when no replica is removed."""
    names: Mapping[int, str] = {}
    """Names of the replicas, by number."""

    def plans(self, only: int = 0) -> list[Candidate]:
        """Return the plans that could follow, with their predictions. only: the one count to consider; 0: all."""
        now, group, paths, grid = self.now, self.now.group, self.now.paths, self.now.grid
        found, done, loads = list[Placement](), list[Candidate](), [paths.sizes + 1e-6]
        if group.present and (group.owners >= 0).all():
            found.append((group.owners, tuple(range(group.present))))
            done = self._predicted(found, 0)
            if done[0].late_cost > self.options.change_price_s:
                loads.append(paths.sizes + now.waiting.sum(axis=0) + 1e-6)
        partitions, by_path, waits = len(group.owners), paths.events.sum(axis=2), float(now.waiting.sum())
        needs = queues.pooled_need(by_path, waits, float(group.rates[-1]), grid.slot_s, grid.target_s, partitions)
        wanted = {only} if only else {*needs.tolist(), *(needs + 1).tolist(), group.present, group.present - 1}
        counts, most = sorted(wanted & {*range(1, partitions + 1)}), MAX_COUNTS if partitions < 1000 else 2
        while counts:
            if len(counts) > most:
                counts = sorted({counts[place] for place in np.linspace(0, len(counts) - 1, most).astype(int)})
            add_plans(found, group, loads, counts)
            done += self._predicted(found, len(done))
            best = min(done, key=lambda one: one.cost)
            # partitions cannot be shared: more replicas may be needed than for one queue
            limit = 0 if only else min(partitions, len(best.replicas) + int(best.late_cost / now.paid_s))
            counts, most = list(range(counts[-1] + 1, limit + 1)), 3
        return [one for one in done if only in (0, len(one.replicas))]

    def choose(self, found: list[Candidate]) -> Candidate | None:
        """Return the cheapest plan that is allowed."""
        present = self.now.group.present
        least = present if self.early else min(present, self.now.least)
        for one in sorted(found, key=lambda one: (len(one.replicas) < least, one.cost)):
            if len(one.replicas) >= present or (not self.early and self.now.lasts(one.owners)):
                return one
        return None

    def reason(self, chosen: Candidate, found: list[Candidate]) -> str:
        """Return what is expected with the chosen plan, and without a change or with another count."""
        text = f"{number(float(self.now.paths.sizes.sum()))} events expected per interval; with {chosen}"
        present = self.now.group.present
        staying = next((one for one in found if not one.moved and len(one.replicas) == present), chosen)
        others = [one for one in found if len(one.replicas) != len(chosen.replicas)]
        if staying is not chosen:
            text += f"; without a change: {staying}"
        elif others:
            text += f", with {min(others, key=lambda one: one.cost)}"
        return text + self._out_of_reach(min(one.late for one in found))

    def _out_of_reach(self, late: float) -> str:
        """Return a text if no plan meets the SLO within the horizon because a start comes too late. late: the least."""
        group, grid, waits = self.now.group, self.now.grid, float(self.now.waiting.sum())
        middle, start_s = self.now.paths.events[[self.now.paths.middle]].sum(axis=2), float(group.starting_s[-1])
        if not start_s or late <= self.allowance.share * (waits + middle.sum()) + 1:
            return ""
        rate, most = float(group.rates[-1]), len(group.owners)
        need = queues.pooled_need(middle, waits, rate, grid.slot_s, grid.target_s, most)[0]
        return f"; out of reach: needs {need} replicas {number(start_s)} s earlier" if need > group.present else ""

    def _predicted(self, found: list[Placement], known: int) -> list[Candidate]:
        """Return predictions of all plans but the first `known`."""
        now, options, group, paths = self.now, self.options, self.now.group, self.now.paths
        first, middle = min(known, 1), paths.middle
        plans = found[:first] + found[known:]  # the queue model compares all others to the first one
        owners, counts = np.array([one for one, _ in plans]), np.array([len(replicas) for _, replicas in plans])
        numbers = max(group.present, int(owners.max()) + 1)  # unused new replicas would cost time
        used = group._replace(rates=group.rates[:numbers], starting_s=group.starting_s[:numbers])
        lost, every = queues.late_of_plans(now.waiting, paths.events, owners, used, now.grid)
        late = lost @ paths.weights + every[:, middle] - lost[:, middle]  # and what is expected later
        moves = owners != group.owners
        moved = moves.sum(axis=1)
        starts = counts - [bisect_left(replicas, group.present) for _, replicas in plans]
        late_cost = options.price / (group.rates[-1] * self.allowance.share) * late * self.allowance.factor(late)
        in_sla = np.clip(1 - late / max(1.0, float(now.waiting.sum() + paths.events[middle].sum())), 0.0, 1.0)
        total = counts * now.paid_s + starts * options.start_price_s + late_cost
        total += options.move_price_s * moved + options.change_price_s * ((moved > 0) | (counts != group.present))
        total += PINNED * (moves & (group.in_handover_s > 0)).sum(axis=1)
        figures = zip(*(each.tolist() for each in (late, in_sla, late_cost, total, moved)), strict=True)
        return [Candidate(*plan, *some) for plan, some in zip(plans, figures, strict=True)][first:]


def add_plans(found: list[Placement], group: Group, loads: Sequence[Floats], counts: Sequence[int]) -> None:
    """Add plans with these replica counts. loads: events by partition, by which plans are packed."""
    known = {(owners.tobytes(), replicas) for owners, replicas in found}
    for load in loads:
        for owners, in_use in zip(*_placements(load, np.array(counts), group), strict=True):
            replicas = tuple(in_use.nonzero()[0].tolist())
            if (key := (owners.tobytes(), replicas)) not in known:
                known.add(key)
                found.append((owners, replicas))


@compiled
def _placements(load: Floats, counts: Ints, group: Group) -> tuple[Ints, Flags]:
    """Return the owners and the replicas in use, by plan: each count with each slack, with few moves."""
    order, weights = np.argsort(-load, kind="mergesort"), load + np.where(group.in_handover_s > 0, PINNED, 0.0)
    placed = np.empty((len(counts) * len(SLACKS), len(load)), np.int64)
    in_use = np.zeros((len(placed), max(group.present, counts.max())), np.bool_)
    plan = 0
    for count in counts:
        numbers, level = max(group.present, count), fill_level(load[order], count)
        for slack in SLACKS:
            capacities = level * (1.001 + slack) * group.rates[:numbers] / group.rates[-1]
            placed[plan], in_use[plan, :numbers] = place_on(count, load, order, weights, group.owners, capacities)
            plan += 1
    return placed, in_use


def alternatives(chosen: Candidate, found: list[Candidate]) -> tuple[Alternative, ...]:
    """Return the chosen plan, then the cheapest one of each other count."""
    cheapest = {len(chosen.replicas): chosen}
    for one in sorted(found, key=lambda one: one.cost):
        cheapest.setdefault(len(one.replicas), one)
    return tuple(Alternative(count, one.moved, one.in_sla, one.cost) for count, one in cheapest.items())
