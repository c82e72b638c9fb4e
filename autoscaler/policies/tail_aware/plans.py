"""The plans that are compared: the present one, and others with few moves. Predicts their late events and cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import Floats, Ints
from autoscaler.model import Alternative
from autoscaler.packing.few_moves import add_plans
from autoscaler.policies.planning import number
from autoscaler.policies.tail_aware import queues
from autoscaler.policies.tail_aware.memory import Allowance
from autoscaler.policies.tail_aware.queues import Grid, Group, Paths
from contracts.settings import Settings, setting

MAX_COUNTS: Final = 6
"""Replica counts that are considered at first; fewer in groups with over 1,000 partitions."""
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

    def needs(self, by_slot: Floats) -> Ints:
        """Return how few replicas, with their events shared equally, serve each path in time."""
        most, rate, waits = len(self.group.owners), float(self.group.rates[-1]), float(self.waiting.sum())
        return queues.pooled_need(by_slot, waits, rate, self.grid.slot_s, self.grid.target_s, most)

    def replayed(self, owners: Ints, paths: Floats, due_s: float = 0.0) -> Floats:
        """Return the late events by replica, kind and path under a plan: those due until `due_s`, and all."""
        grid, events = self.grid._replace(saved_s=due_s, extrapolate=False), queues.joined(self.waiting, paths)
        return queues.late_by_replica(events, owners, np.arange(len(owners)), self.group, grid)


class Candidate(NamedTuple):
    """A plan with its prediction."""

    owners: Ints
    in_use: Ints
    replicas: int
    late: float
    """Expected late events."""
    in_sla: float
    """Expected share of events in time."""
    late_cost: float
    cost: float
    moved: int

    def __str__(self) -> str:
        replicas = f"{self.replicas} replica" + "s" * (self.replicas != 1)
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
        now, group, sizes, partitions = self.now, self.now.group, self.now.paths.sizes, len(self.now.group.owners)
        events, in_use = queues.joined(now.waiting, now.paths.events), np.arange(len(group.rates)) < group.present
        rows, loads = np.concatenate((group.owners, in_use, [group.present]))[None], sizes[None] + 1e-6
        done, base = list[Candidate](), list[Floats]()
        if group.present and (group.owners >= 0).all():
            done = self._predicted(events, rows, base)
            if done[0].late_cost > self.options.change_price_s:
                loads = np.stack((sizes, sizes + now.waiting.sum(axis=0))) + 1e-6
        pinned = np.asarray(np.where(group.in_handover_s > 0, PINNED, 0.0), np.float64)
        rows, needs = rows[: len(done)], now.needs(events.by_slot)
        wanted = {only} if only else {*needs.tolist(), *(needs + 1).tolist(), group.present, group.present - 1}
        counts, most = sorted(one for one in wanted if 1 <= one <= partitions), MAX_COUNTS if partitions < 1000 else 2
        while counts:
            if len(counts) > most:
                counts = sorted({counts[place * (len(counts) - 1) // (most - 1)] for place in range(most)})
            rows = add_plans(rows, loads, pinned, np.array(counts), group.owners, group.rates, group.present)
            done += self._predicted(events, rows, base, len(done))
            best = min(done, key=lambda one: one.cost)
            # partitions cannot be shared: more replicas may be needed than for one queue
            limit = 0 if only else min(partitions, best.replicas + int(best.late_cost / now.paid_s))
            counts, most = list(range(counts[-1] + 1, limit + 1)), 3
        return [one for one in done if only in (0, one.replicas)]

    def choose(self, found: list[Candidate]) -> Candidate | None:
        """Return the cheapest plan that is allowed."""
        present = self.now.group.present
        least = present if self.early else min(present, self.now.least)
        for one in sorted(found, key=lambda one: (one.replicas < least, one.cost)):
            if one.replicas >= present or (not self.early and self.now.lasts(one.owners)):
                return one
        return None

    def reason(self, chosen: Candidate, found: list[Candidate]) -> str:
        """Return what is expected with the chosen plan, and without a change or with another count."""
        now, present, start_s = self.now, self.now.group.present, float(self.now.group.starting_s[-1])
        text = f"{number(float(now.paths.sizes.sum()))} events expected per interval; with {chosen}"
        staying = next((one for one in found if not one.moved and one.replicas == present), chosen)
        others = [one for one in found if one.replicas != chosen.replicas]
        if staying is not chosen:
            text += f"; without a change: {staying}"
        elif others:
            text += f", with {min(others, key=lambda one: one.cost)}"
        if start_s:
            by_slot = now.paths.events[[now.paths.middle]].sum(axis=2)
            allowed = self.allowance.share * (float(now.waiting.sum()) + by_slot.sum()) + 1
            need = now.needs(by_slot)[0] if min(one.late for one in found) > allowed else 0
            text += f"; out of reach: needs {need} replicas {number(start_s)} s earlier" if need > present else ""
        return text

    def _predicted(self, events: queues.Events, rows: Ints, base: list[Floats], known: int = 0) -> list[Candidate]:
        """Return predictions of all plans but the first `known`. rows: as in `add_plans`. base: filled at first."""
        now, options, group, paths = self.now, self.options, self.now.group, self.now.paths
        first, middle, partitions = min(known, 1), paths.middle, len(group.owners)
        # the queue model compares all others to the first one
        rows = np.concatenate((rows[:first], rows[known:])) if known > 1 else rows
        owners, counts = np.ascontiguousarray(rows[:, :partitions]), rows[:, -1]
        numbers = max(group.present, int(owners.max()) + 1)  # unused new replicas would cost time
        used = group._replace(rates=group.rates[:numbers], starting_s=group.starting_s[:numbers])
        if not known:
            base.append(queues.late_by_replica(events, owners[0], np.arange(partitions), group, now.grid))
        lost, every = queues.late_of_plans(events, owners, base[0], used, now.grid)
        late = lost @ paths.weights + every[:, middle] - lost[:, middle]  # and what is expected later
        moves = owners != group.owners
        in_use, moved = rows[:, partitions:-1], moves.sum(axis=1)
        starts = in_use[:, group.present :].sum(axis=1)
        late_cost = options.price / (group.rates[-1] * self.allowance.share) * late * self.allowance.factor(late)
        in_sla = 1 - late / max(1.0, float(now.waiting.sum() + paths.events[middle].sum()))
        total = counts * now.paid_s + starts * options.start_price_s + late_cost
        total += options.move_price_s * moved + options.change_price_s * ((moved > 0) | (counts != group.present))
        if group.in_handover_s.any():
            total += PINNED * (moves & (group.in_handover_s > 0)).sum(axis=1)
        figures = (counts, late, np.minimum(np.maximum(in_sla, 0.0), 1.0), late_cost, total, moved)
        return list(starmap(Candidate, zip(owners, in_use, *(each.tolist() for each in figures), strict=True)))[first:]


def alternatives(chosen: Candidate, found: list[Candidate]) -> tuple[Alternative, ...]:
    """Return the chosen plan, then the cheapest one of each other count."""
    cheapest = {chosen.replicas: chosen}
    for one in sorted(found, key=lambda one: one.cost):
        cheapest.setdefault(one.replicas, one)
    return tuple(Alternative(count, one.moved, one.in_sla, one.cost) for count, one in cheapest.items())
