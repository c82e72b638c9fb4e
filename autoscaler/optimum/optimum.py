"""The least replica-minutes that known events can be served for: a schedule that does it, and a bound that is proven.

Exact for up to five partitions, whose placements are few enough to try them all. More are put into five groups that
move together: that gives a schedule still, and what bounds it from below is one queue that all replicas serve.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Final

import msgspec
import numpy as np

from autoscaler.optimum.search import NOBODY, Ints, Load, Prices, States, search

PREFIX: Final = "payment"
GROUPS: Final = 5
"""Partitions whose placements are all tried: 52 of them."""
KEEP: Final = 3
"""Ways to have come to a placement, where queues outlive a tick; more than these gain W3 and W4 < 0.1 %."""
POOLED_KEEP: Final = 64
LATE_S: Final = 0.15
"""First price of a late event, replica-seconds; W1 and taxi are bounded best there."""
STEP: Final = 1.6
"""From one price to the next."""
MINUTE_US: Final = 60_000_000
RATHER_LATE_US: Final = 60_000_000
"""A replica-minute for each late event: what is paid where some must be late."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is to be served, by what rules."""

    times_us: Ints
    """When events are intended, by number; never falling."""
    partition: Ints
    takes_us: Ints
    """Service of each event."""
    partitions: int
    ticks_us: Ints
    """When placements may change."""
    duration_us: int
    """Replicas are paid for until then."""
    target_us: int
    """W."""
    late_share: float
    """That the promise allows."""
    pause_us: int
    startup_us: int
    owners: tuple[int, ...]
    """By partition: its replica before the first tick, 0 …"""
    replicas: int
    """How many there are before it."""
    least_replicas: int = 1
    most_replicas: int


class Optimum(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    optimum_replica_minutes: float
    """Of the cheapest schedule found in which no event is late, or as few as can be."""
    late: int
    """Events of it that are late nevertheless."""
    lower: float
    """Replica-minutes below which no schedule keeps the promise, which lets its share of events be late."""
    lower_none_late: float
    """Below which none keeps all events in time."""
    method: str
    """How both were found."""
    wall_s: float


Schedule = tuple[tuple[int, tuple[str, ...], tuple[str, ...]], ...]
"""(µs, replicas from then on, the owner of each partition), at ticks, where it changes."""


def optimum(question: Question, *, prices: int = 2, keep: int = KEEP) -> tuple[Optimum, Schedule]:
    """Return the least cost and the schedule that has it. prices: how many are tried for the lower end."""
    began_s = time.perf_counter()
    if not len(question.times_us) or not len(question.ticks_us):
        least = question.replicas if not len(question.ticks_us) else 1
        return _trivial(question, least, began_s), ()
    grouped = Groups.of(question)
    exact = len(grouped.content) == question.partitions
    with ThreadPoolExecutor() as pool:
        cheapest = pool.submit(_cheapest, question, grouped, keep)
        bounded = [pool.submit(_bounded, question, one, prices) for one in ([grouped] if exact else []) + [None]]
        never_late = [pool.submit(_least, question, one, 0) for one in ([grouped] if exact else []) + [None]]
        cost_us, late, plans = cheapest.result()
        lower_us = max(one.result() for one in bounded)
        none_late_us = max([lower_us, *(value for value, _ in (one.result() for one in never_late) if value > 0)])
    proven = not late and cost_us <= none_late_us
    found = Optimum(
        optimum_replica_minutes=cost_us / MINUTE_US,
        late=late,
        lower=min(lower_us, cost_us) / MINUTE_US,
        lower_none_late=min(none_late_us, cost_us) / MINUTE_US,
        method=_method(question, exact, proven, late),
        wall_s=time.perf_counter() - began_s,
    )
    return found, plans


@dataclass(frozen=True, slots=True)
class Groups:
    """Partitions that move together."""

    content: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, question: Question) -> "Groups":
        """Return a group for each partition, or the lightest ones put together until there are few enough."""
        work = np.bincount(question.partition, weights=question.takes_us, minlength=question.partitions)
        groups: list[tuple[float, tuple[int, ...]]]
        groups = sorted(((float(of), (one,)) for one, of in enumerate(work)), reverse=True)
        while len(groups) > GROUPS:
            (light, some), (lighter, others) = groups[-2:]
            groups = sorted([*groups[:-2], (light + lighter, some + others)], reverse=True)
        return cls(tuple(sorted(tuple(sorted(content)) for _, content in groups)))

    def by_partition(self, partitions: int) -> Ints:
        """Return the group of each partition."""
        label = np.zeros(partitions, np.int64)
        for number, content in enumerate(self.content):
            label[list(content)] = number
        return label


def _cheapest(question: Question, groups: Groups, keep: int) -> tuple[int, int, Schedule]:
    """Return cost (replica-µs), late events and plans of the cheapest schedule; none is late if that can be."""
    load, states = _load(question, groups), _states(question, groups)
    initial = _initial(question, groups, states)
    prices = _prices(question)
    carried = question.target_us > np.diff(np.unique(question.times_us)).min(initial=question.duration_us)
    best: tuple[int, int, Ints, Ints] | None = None
    for ways in dict.fromkeys((1, keep if carried else 1)):
        value, late, path, kept = search(load, states, question.ticks_us, prices, initial, ways)
        if value >= 0 and (best is None or value < best[0]):
            best = value, late, path, kept
    if best is None:
        prices = prices._replace(late_us=RATHER_LATE_US)
        best = search(load, states, question.ticks_us, prices, initial, 1)
    value, late, path, kept = best
    return value - prices.late_us * late, late, _plans(question, groups, states, path, kept)


def _bounded(question: Question, groups: Groups | None, prices: int) -> int:
    """Return a lower bound of all schedules that keep the promise.

    For any price the cheapest schedule with late events paid costs at most what one that keeps the promise costs, its
    late events paid (Lagrange).
    """
    allowed = int(question.late_share * len(question.times_us))
    best, low, high = 0, 0.0, float("inf")
    price_us = LATE_S * 1e6
    for _ in range(prices):
        value, late = _least(question, groups, round(price_us))
        best = max(best, value - round(price_us) * allowed)
        low, high = (price_us, high) if late > allowed else (low, price_us)
        price_us = (low * high) ** 0.5 if 0 < low < high < float("inf") else price_us * (STEP if low else 1 / STEP)
    return best


def _least(question: Question, groups: Groups | None, late_us: int) -> tuple[int, int]:
    """Return the least value of any schedule, and how many are late. groups None: one queue that all replicas serve."""
    prices = _prices(question)._replace(late_us=late_us, optimistic=True)
    if groups is not None:
        states = _states(question, groups)
        initial = _initial(question, groups, states)
        value, late, _, _ = search(_load(question, groups), states, question.ticks_us, prices, initial, 1)
        return value, late
    one = Groups((tuple(range(question.partitions)),))
    counts = np.arange(question.least_replicas, max(question.replicas, question.most_replicas) + 1)
    states = States(np.zeros((len(counts), 1), np.int64), counts, counts.astype(float))
    prices = prices._replace(pause_us=0, drop=True)
    initial = max(0, question.replicas - question.least_replicas)
    value, late, _, _ = search(_load(question, one), states, question.ticks_us, prices, initial, POOLED_KEEP)
    return value, late


def _load(question: Question, groups: Groups) -> Load:
    label = groups.by_partition(question.partitions)[question.partition]
    order = np.argsort(label, kind="stable")
    first = np.searchsorted(label[order], np.arange(len(groups.content) + 1))
    return Load(order, question.times_us[order], question.takes_us[order], first)


def _prices(question: Question) -> Prices:
    interval_us = int(np.diff(question.ticks_us).min(initial=question.duration_us))
    return Prices(
        until_us=question.duration_us,
        pause_us=question.pause_us,
        startup_us=-(-question.startup_us // interval_us) * interval_us,  # replicas are asked for at ticks
        target_us=question.target_us,
        late_us=0,
        drop=False,
        optimistic=False,
    )


def _states(question: Question, groups: Groups) -> States:
    """Return all placements of the groups; where a start-up costs, each also with replicas that stay without any."""
    rows = []
    most = min(question.most_replicas, max(len(groups.content), question.least_replicas, question.replicas))
    for placement in _placements(len(groups.content)):
        least = max(question.least_replicas, max(placement) + 1)
        idle = most if question.startup_us or question.replicas > least else least
        rows += [(placement, replicas) for replicas in range(least, min(idle, most) + 1)]
    member, replicas = zip(*rows, strict=True)
    return States(np.array(member, np.int64), np.array(replicas, np.int64), np.ones(len(rows)))


def _placements(items: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to put items into bins, as the bin of each; bins are numbered as they appear."""
    ways: list[tuple[int, ...]] = [()]
    for _ in range(items):
        ways = [(*way, one) for way in ways for one in range(max(way, default=-1) + 2)]
    yield from ways


def _initial(question: Question, groups: Groups, states: States) -> int:
    """Return the state before the first tick; a group is where its first partition is."""
    bins: dict[int, int] = {}
    placement = [bins.setdefault(question.owners[content[0]], len(bins)) for content in groups.content]
    here = (states.member == placement).all(axis=1) & (states.replicas >= min(question.replicas, len(placement)))
    return int(np.flatnonzero(here)[0])


def _plans(question: Question, groups: Groups, states: States, path: Ints, kept: Ints) -> Schedule:
    """Return the path as plans of named replicas; who needs a start-up is in them so long before."""
    names = [f"{PREFIX}-{number}" for number in range(question.replicas)]
    first = [question.owners[content[0]] for content in groups.content]
    holding = [names[owner] for owner in dict.fromkeys(first)]
    idle = [name for name in names if name not in holding]
    fresh = count(len(names))
    steps: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    of_partition = groups.by_partition(question.partitions)
    for at_us, state, heirs in zip(question.ticks_us.tolist(), path.tolist(), kept.tolist(), strict=True):
        bins = int(states.member[state].max()) + 1
        taken = [holding[heir] if heir != NOBODY else "" for heir in heirs[:bins]]
        spare = [*idle, *(name for name in holding if name not in taken)]
        free = chain(spare, (f"{PREFIX}-{number}" for number in fresh))
        holding = [name or next(free) for name in taken]
        idle = list(islice(free, int(states.replicas[state]) - bins))
        owners = tuple(holding[bin_] for bin_ in states.member[state][of_partition])
        steps.append((at_us, (*holding, *idle), owners))
    return _requested_ahead(steps, question.startup_us)


def _requested_ahead(steps: Sequence[tuple[int, tuple[str, ...], tuple[str, ...]]], startup_us: int) -> Schedule:
    """Return the plans, each with the replicas that a later one needs within a start-up; without those that repeat."""
    plans: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    times_us = [at_us for at_us, _, _ in steps]
    for index, (at_us, names, owners) in enumerate(steps):
        following_us = times_us[index + 1] if index + 1 < len(steps) else at_us
        soon = bisect_left(times_us, following_us + startup_us) if startup_us else index + 1
        replicas = tuple(dict.fromkeys(chain(names, *(more for _, more, _ in steps[index + 1 : soon]))))
        if not plans or plans[-1][1:] != (replicas, owners):
            plans.append((at_us, replicas, owners))
    return tuple(plans)


def _trivial(question: Question, replicas: int, began_s: float) -> Optimum:
    least = replicas * question.duration_us / MINUTE_US
    return Optimum(
        optimum_replica_minutes=least,
        late=0,
        lower=least,
        lower_none_late=least,
        method="no event",
        wall_s=time.perf_counter() - began_s,
    )


def _method(question: Question, exact: bool, proven: bool, late: int) -> str:
    """Return in words how both ends were found."""
    which = "every placement" if exact else f"{GROUPS} groups of partitions"
    how = f"dynamic programming over {which} at {len(question.ticks_us)} ticks"
    what = "least with none late, proven" if proven else "best schedule found" + (f", {late} late" if late else "")
    lower = "late events at a price (Lagrange)" + ("" if exact else ", one queue for all replicas")
    return f"{how}: {what}; lower end: {lower}"
