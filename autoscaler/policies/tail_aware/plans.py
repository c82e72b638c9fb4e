"""The plans that are compared: the present one, and others with few moves. Predicts their late events and cost."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.model import Alternative
from autoscaler.packing.few_moves import fewest_moves, relieved
from autoscaler.policies.planning import number
from autoscaler.policies.tail_aware.arrivals import Flags, Floats, Ints
from autoscaler.policies.tail_aware.forecast import Paths
from autoscaler.policies.tail_aware.memory import Allowance
from autoscaler.policies.tail_aware.queues import Grid, Group, late_by_replica, late_of_plans, pooled_need
from contracts.settings import Settings, setting

MAX_COUNTS: Final = 6
"""Replica counts that are considered at first; fewer in groups with over 1,000 partitions."""
SLACKS: Final = (0.0, 0.1, 0.3)
"""Room of a replica above the lowest possible fill level. More room needs fewer moves."""
SEARCHED: Final = 12
"""Most partitions for which the plan with the fewest moves is searched, within SEARCH_STEPS."""
SEARCH_STEPS: Final = 20_000
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


cost: Final = attrgetter("cost")
Placement = tuple[Ints, tuple[int, ...]]
"""A plan: the owner of each partition, and the replicas."""


class Situation(NamedTuple):
    """The data by which plans are compared."""

    group: Group
    present: int
    """Number of present replicas."""
    waiting: Floats
    paths: Paths
    grid: Grid
    start_s: float
    """Time that a new replica needs to start."""
    paid_s: float
    """Time for which the replicas of a plan are paid."""
    interval_s: float
    least: int
    """Replicas to keep."""

    def lasts(self, owners: Ints) -> bool:
        """Return whether no replica has more events in an interval than it can serve in that time."""
        load, held = np.bincount(owners, self.paths.sizes), np.bincount(owners)
        return bool((load <= self.group.rates[: len(load)] * self.interval_s)[held > 1].all())

    def numbered(self, owners: Ints, replicas: Iterable[tuple[int, ...]]) -> Group:
        """Return the group with the replicas of these plans and the present ones. owners: of one plan or several."""
        highest = max(self.present, int(owners.max()) + 1, *(each[-1] + 1 for each in replicas))
        return self.group._replace(rates=self.group.rates[:highest], starting_s=self.group.starting_s[:highest])

    def replayed(self, plan: Placement, paths: Floats, due_s: float = 0.0) -> Floats:
        """Return the late events by kind, path and replica under a plan: those due until `due_s`, and all."""
        grid = self.grid._replace(saved_s=due_s, extrapolate=False)
        return late_by_replica(self.waiting, paths, plan[0], self.numbered(plan[0], plan[1:]), grid)


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


def compare(now: Situation, options: TailAwareSettings, budget: Allowance, only: int = 0) -> list[Candidate]:
    """Return the plans that could follow, with their predictions. only: the one count to consider; 0: all."""
    group, paths, grid = now.group, now.paths, now.grid
    partitions = len(group.owners)
    found, done, loads = list[Placement](), list[Candidate](), [paths.sizes + 1e-6]
    if now.present and (group.owners >= 0).all():
        found.append((group.owners, tuple(range(now.present))))
        done = _predicted(now, options, budget, found, 0)
        if done[0].late_cost > options.change_price_s:
            loads.append(paths.sizes + now.waiting.sum(axis=0) + 1e-6)
    by_path, waits = paths.events.sum(axis=2), float(now.waiting.sum())
    needs = pooled_need(by_path, waits, float(group.rates[-1]), grid.slot_s, grid.target_s, partitions)
    wanted = {only} if only else {*needs.tolist(), *(needs + 1).tolist(), now.present, now.present - 1}
    counts = sorted(wanted & {*range(1, partitions + 1)})
    most = MAX_COUNTS if partitions < 1000 else 2
    while counts:
        if len(counts) > most:
            counts = sorted({counts[place] for place in np.linspace(0, len(counts) - 1, most).astype(int)})
        add_plans(found, group, loads, now.present, counts)
        done += _predicted(now, options, budget, found, len(done))
        if only:
            break
        best, top = min(done, key=cost), counts[-1]
        # partitions cannot be shared: more replicas may be needed than for one queue
        limit = min(partitions, len(best.replicas) + int(best.late_cost / now.paid_s))
        counts, most = list(range(top + 1, limit + 1)), 3
    return done


class Comparison(NamedTuple):
    """The input of a comparison, by which it can be repeated."""

    now: Situation
    options: TailAwareSettings
    allowance: Allowance
    early: bool
    """Whether the decision is made between two ticks, when no replica is removed."""
    names: Mapping[int, str] = {}
    """Names of the replicas, by number."""

    def plans(self, count: int = 0) -> list[Candidate]:
        """Return the plans that are compared. count: only those with this number of replicas."""
        found = compare(self.now, self.options, self.allowance, only=count)
        return [one for one in found if count in (0, len(one.replicas))]

    def choose(self, found: list[Candidate]) -> Candidate | None:
        """Return the cheapest plan that is allowed."""
        now, early = self.now, self.early
        least = now.present if early else min(now.present, now.least)
        allowed = [one for one in found if len(one.replicas) >= now.present or (not early and now.lasts(one.owners))]
        return min([one for one in allowed if len(one.replicas) >= least] or allowed, key=cost, default=None)


def _predicted(
    now: Situation, options: TailAwareSettings, budget: Allowance, found: list[Placement], known: int
) -> list[Candidate]:
    """Return predictions of all plans but the first `known`."""
    # the first plan is the one to which the queue model compares all others
    first, middle = min(known, 1), now.paths.middle
    plans = found[:first] + found[known:]
    owners, paths = np.array([one for one, _ in plans]), now.paths
    group = now.numbered(owners, (replicas for _, replicas in plans))
    lost, every = late_of_plans(now.waiting, paths.events, owners, group, now.grid)
    late = lost @ paths.weights + every[:, middle] - lost[:, middle]  # and what is expected later
    moves = owners != group.owners
    moved = moves.sum(axis=1)
    counts = np.array([len(replicas) for _, replicas in plans])
    starts = np.array([len(replicas) - bisect_left(replicas, now.present) for _, replicas in plans])
    price = options.price / (now.group.rates[-1] * budget.share)
    late_cost = price * late * budget.factor(late)
    in_sla = np.clip(1 - late / max(1.0, float(now.waiting.sum() + paths.events[middle].sum())), 0.0, 1.0)
    total = counts * now.paid_s + starts * options.start_price_s + late_cost
    total += options.move_price_s * moved + options.change_price_s * ((moved > 0) | (counts != now.present))
    total += PINNED * (moves & (group.in_handover_s > 0)).sum(axis=1)
    figures = zip(*(each.tolist() for each in (late, in_sla, late_cost, total, moved)), strict=True)
    return [Candidate(*plan, *some) for plan, some in zip(plans, figures, strict=True)][first:]


def add_plans(
    found: list[Placement], group: Group, loads: Sequence[Floats], present: int, counts: Sequence[int]
) -> None:
    """Add plans with these replica counts. loads: events by partition, by which plans are packed."""
    known = {(owners.tobytes(), replicas) for owners, replicas in found}
    for load in loads:
        for owners, in_use in zip(*_placements(load, np.array(counts), present, group), strict=True):
            replicas = tuple(in_use.nonzero()[0].tolist())
            if (key := (owners.tobytes(), replicas)) not in known:
                known.add(key)
                found.append((owners, replicas))


@compiled
def _placements(load: Floats, counts: Ints, present: int, group: Group) -> tuple[Ints, Flags]:
    """Return the owners and the replicas in use, by plan: each count with each slack, with few moves."""
    order, weights = np.argsort(-load, kind="mergesort"), load + np.where(group.in_handover_s > 0, PINNED, 0.0)
    placed = np.empty((len(counts) * len(SLACKS), len(load)), np.int64)
    in_use = np.zeros((len(placed), max(present, counts.max())), np.bool_)
    for plan in range(len(placed)):
        count = counts[plan // len(SLACKS)]
        numbers, fits, using = max(present, count), False, in_use[plan]
        level = fill_level(load[order], count) * (1.001 + SLACKS[plan % len(SLACKS)])
        capacities = level * group.rates[:numbers] / group.rates[-1]
        if len(load) <= SEARCHED:
            placed[plan], fits = fewest_moves(load, weights, group.owners, capacities, count, SEARCH_STEPS)
        if fits:  # replicas in use, and others without partitions
            using[placed[plan]] = True
            using[np.flatnonzero(~using[:numbers])[: count - np.count_nonzero(using)]] = True
            continue
        closed, held = np.zeros(numbers, np.int64), np.zeros(numbers)
        for partition in range(len(load)):
            if group.owners[partition] >= 0:
                held[group.owners[partition]] += weights[partition]
        closed[np.argsort(held, kind="mergesort")[: numbers - count]] = 1
        placed[plan] = relieved(load, order, group.owners, capacities, closed)[0]
        using[:numbers] = closed == 0
    return placed, in_use


@compiled
def fill_level(falling: Floats, count: int) -> float:
    """Return about the lowest load that the fullest replica can have. falling: loads, largest first.

    A partition that exceeds the mean of the others has a replica of its own and does not count.
    """
    alone, rest = 0, falling.sum()
    while alone < count - 1 and falling[alone] > rest / (count - alone):
        rest -= falling[alone]
        alone += 1
    heap = [(0.0, number) for number in range(count - alone)]
    for load in falling[alone:]:  # each partition goes to the replica with the least load
        heapreplace(heap, (heap[0][0] + load, heap[0][1]))
    highest = max([load for load, _ in heap])
    return max(highest, 1e-9)


def alternatives(chosen: Candidate, found: list[Candidate]) -> Iterator[Alternative]:
    """Yield the chosen plan, then the cheapest one of each other count."""
    cheapest: dict[int, Candidate] = {}
    for one in sorted(found, key=cost):
        cheapest.setdefault(len(one.replicas), one)
    cheapest.pop(len(chosen.replicas), None)
    for one in (chosen, *cheapest.values()):
        yield Alternative(len(one.replicas), one.moved, one.in_sla, one.cost)


def why(now: Situation, chosen: Candidate, found: list[Candidate]) -> str:
    """Return what is expected with the chosen plan, and without a change or with another count."""
    text = f"{number(float(now.paths.sizes.sum()))} events expected per interval; {_describe(chosen)}"
    staying = next((one for one in found if not one.moved and len(one.replicas) == now.present), None)
    if staying is not None and staying is not chosen and (chosen.moved or len(chosen.replicas) != now.present):
        return f"{text}; without a change: {_describe(staying).removeprefix('with ')}"
    others = [one for one in found if len(one.replicas) != len(chosen.replicas)]
    return f"{text}, {_describe(min(others, key=cost))}" if others else text


def _describe(one: Candidate) -> str:
    count = len(one.replicas)
    replicas = f"{count} replica" + "s" * (count != 1)
    return f"with {replicas} {100 * one.in_sla:.4g} % in time at cost {number(one.cost)}"


def out_of_reach(now: Situation, found: list[Candidate], allowed_share: float) -> str:
    """Return a text if no plan meets the SLO within the horizon because a start comes too late; else none."""
    paths, late = now.paths, min(one.late for one in found)
    middle = paths.events[[paths.middle]].sum(axis=2)
    waits, rate = float(now.waiting.sum()), float(now.group.rates[-1])
    need = int(pooled_need(middle, waits, rate, now.grid.slot_s, now.grid.target_s, len(now.group.owners))[0])
    if not now.start_s or need <= now.present or late <= allowed_share * (waits + middle.sum()) + 1:
        return ""
    return f"; out of reach: needs {need} replicas {number(now.start_s)} s earlier"
