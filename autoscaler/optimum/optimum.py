"""The least replica-minutes that known events can be served for: a schedule that does it, and a proof of what cannot.

Up to five partitions have so few placements that all of them are tried. For more, placements worth trying are made tick
by tick, the best way through them is found, and others near it are tried next.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any, Final, ParamSpec, TypeVar

import msgspec
import numpy as np

from autoscaler.optimum.columns import choose
from autoscaler.optimum.neighbours import first_columns, near_columns
from autoscaler.optimum.pooled import pooled
from autoscaler.optimum.schedule import Schedule, plans_of
from autoscaler.optimum.search import States, search
from autoscaler.optimum.serving import NEVER, Ints, Load, Prices

EXACT: Final = 5
"""Partitions whose placements are all tried: 52 of them."""
KEEP: Final = 3
"""Ways to have come to a placement, where queues or pauses outlive a tick; more than these gain W3 and W4 < 0.1 %."""
ROUNDS: Final = 12
"""In which placements near the best ones are tried."""
SEED: Final = 1
LATE_S: Final = (0.15, 1.6)
"""First price of a late event, replica-seconds, by which W1 and taxi are known best; and from one price to the next."""
CAPS: Final = (0.99, 0.999, 1.0)
"""Quantiles of the service times that the lower end takes for the longest, where they differ."""
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
    """Of each partition that moves."""
    startup_us: int
    owners: tuple[int, ...]
    """By partition: its replica before the first tick, 0 …"""
    replicas: int
    """How many there are before it."""
    least_replicas: int = 1
    most_replicas: int


class Optimum(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    optimum_replica_minutes: float | None
    """Of the cheapest schedule found in which no event is late, or as few as can be; None: none keeps the promise."""
    late: int
    """Events of it that are late nevertheless."""
    lower: float
    """Replica-minutes below which no schedule keeps the promise, which lets its share of events be late."""
    lower_none_late: float
    """Below which none keeps all events in time."""
    method: str
    """How both were found."""
    why: str = ""
    """Why the optimum is None."""
    wall_s: float


P = ParamSpec("P")
R = TypeVar("R")
Judge = Callable[[Schedule], tuple[int, int]]
"""Carries a schedule out; returns replica-µs and late events."""


def optimum(
    question: Question, judge: Judge | None = None, *, prices: int = 2, within_s: float | None = None
) -> tuple[Optimum, Schedule]:
    """Return the least cost and the schedule that has it.

    judge: by whose account; None: by the search's own. prices: how many are tried for the lower end. Raises
    TimeoutError after `within_s`; the search then goes on unseen until it or the process ends.
    """
    began_s = time.perf_counter()
    if not len(question.times_us) or not len(question.ticks_us):
        return _trivial(question, began_s), ()
    if within_s is not None:  # which is for the search, not for the compiler
        optimum(_beginning(question), prices=1)
    exact = question.partitions <= EXACT
    cheapest = _begun(_of_all if exact else _of_columns, question)
    least = [_least_pooled, *([_least_of_all] if exact else [])]
    lower = [_begun(_lower, question, one, prices) for one in least]
    none_late = [_begun(one, question, 0) for one in least]
    asked: list[Future[Any]] = [cheapest, *lower, *none_late]
    wait(asked, within_s)
    cost_us, late, plans = cheapest.result(0)
    lower_us = max(one.result(0) for one in lower)
    none_late_us = max([lower_us, *(one.result(0)[0] for one in none_late)])
    if judge is not None:
        cost_us, late = judge(plans)
    allowed = _allowed(question)
    kept, none = late <= allowed, late == 0
    why = f"no schedule was found that keeps the promise: {late:,} events late in the best, {allowed:,} may be"
    found = Optimum(
        optimum_replica_minutes=cost_us / MINUTE_US if kept else None,
        late=late,
        lower=min(lower_us, cost_us if kept else lower_us) / MINUTE_US,
        lower_none_late=min(none_late_us, cost_us if none else none_late_us) / MINUTE_US,
        method=_method(question, proven=none and cost_us <= none_late_us + 1, late=late),
        why="" if kept else why,
        wall_s=time.perf_counter() - began_s,
    )
    return found, plans


def _begun(work: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> "Future[R]":
    """Do work in a thread that nobody has to wait for: machine code cannot be interrupted, a process can end."""
    future = Future[R]()

    def do() -> None:
        try:
            future.set_result(work(*arguments, **named))
        except BaseException as wrong:
            future.set_exception(wrong)

    Thread(target=do, daemon=True).start()
    return future


def _beginning(question: Question) -> Question:
    """Return the same question of the first event alone."""
    times_us, partition, takes_us = question.times_us[:1], question.partition[:1], question.takes_us[:1]
    return replace(question, times_us=times_us, partition=partition, takes_us=takes_us, ticks_us=question.ticks_us[:2])


def _allowed(question: Question) -> int:
    """Return how many events may be late."""
    return int(question.late_share * len(question.times_us) + 1e-6)


def _of_all(question: Question) -> tuple[int, int, Schedule]:
    """Return cost (replica-µs), late events and plans of the cheapest schedule of all placements.

    None of its events is late if that can be.
    """
    load, states, prices = _load(question), _states(question), _prices(question, 0)
    initial = _initial(question, states)
    gap_us = np.diff(np.unique(question.times_us)).min(initial=question.duration_us)
    waits = question.target_us > gap_us or question.pause_us >= np.diff(question.ticks_us).min(initial=NEVER)
    ways = (1, KEEP) if waits else (1,)
    found = [search(load, states, question.ticks_us, prices, initial, keep, False) for keep in ways]
    found = [one for one in found if one[0] >= 0]
    if not found:
        prices = _prices(question, RATHER_LATE_US)
        found = [search(load, states, question.ticks_us, prices, initial, keep, False) for keep in ways]
    value, late, path, kept = min(found, key=lambda one: one[0])
    times_us = question.ticks_us.tolist()
    steps = zip(times_us, states.member[path].tolist(), states.replicas[path].tolist(), kept.tolist(), strict=True)
    return value - prices.late_us * late, late, plans_of(steps, question.owners, question.replicas, question.startup_us)


def _of_columns(question: Question) -> tuple[int, int, Schedule]:
    """Return cost, late events and plans of the cheapest schedule that a local search finds."""
    load, prices = _load(question), _prices(question, RATHER_LATE_US)
    ticks, partitions, owner = question.ticks_us, question.partitions, _first_bins(question)
    ends = np.append(ticks[1:], np.iinfo(np.int64).max)
    spans = [load.time[begin:end] for begin, end in zip(load.first[:-1], load.first[1:], strict=True)]
    reached = np.stack([np.searchsorted(one, ends) for one in spans], axis=1) + load.first[:-1]
    work = np.zeros((len(ticks) + 1, partitions), np.int64)
    np.add.at(work, (np.searchsorted(ticks, question.times_us, side="right"), question.partition), question.takes_us)
    most = min(question.most_replicas, partitions)
    interval_us = int(np.diff(ticks).min(initial=question.duration_us))
    columns = first_columns(work, min(interval_us, question.target_us), most, owner)
    chance = np.random.default_rng(SEED)
    best: tuple[int, int, Ints, Ints, Ints] | None = None
    for _ in range(ROUNDS):
        value, late, path, heirs = choose(
            load, columns, ticks, reached, prices, question.least_replicas, owner, question.replicas
        )
        if best is None or value < best[0]:
            best = value, late, columns.bin[path], columns.bins[path], heirs
        columns = near_columns(work, most, path, columns, chance.integers(0, 1 << 30, (len(ticks), 6)))
    assert best is not None
    value, late, bin_of, bins, heirs = best
    replicas = np.maximum(bins, question.least_replicas)
    steps = zip(ticks.tolist(), bin_of.tolist(), replicas.tolist(), heirs.tolist(), strict=True)
    return value - prices.late_us * late, late, plans_of(steps, question.owners, question.replicas, question.startup_us)


def _lower(question: Question, least: Callable[[Question, int], tuple[int, float]], prices: int) -> int:
    """Return what no schedule that keeps the promise is below.

    For any price the cheapest schedule with late events paid costs at most what one that keeps the promise costs, its
    late events paid (Lagrange).
    """
    allowed = _allowed(question)
    best, low, high = 0, 0.0, float("inf")
    price_us, step = LATE_S[0] * 1e6, LATE_S[1]
    for _ in range(prices):
        value, late = least(question, round(price_us))
        best = max(best, value - round(price_us) * allowed)
        low, high = (price_us, high) if late > allowed else (low, price_us)
        price_us = (low * high) ** 0.5 if 0 < low < high < float("inf") else price_us * (step if low else 1 / step)
    return best


def _least_of_all(question: Question, late_us: int) -> tuple[int, float]:
    """Return the least value of any schedule, and how many are late; late_us 0: none is, and -1 if that cannot be."""
    states = _states(question)
    prices, initial = _prices(question, late_us), _initial(question, states)
    value, late, _, _ = search(_load(question), states, question.ticks_us, prices, initial, 1, True)
    return value, late


def _least_pooled(question: Question, late_us: int) -> tuple[int, float]:
    """Return the same of one queue that all replicas serve."""
    found = []
    for cap_us in dict.fromkeys(np.quantile(question.takes_us, CAPS, method="higher").tolist()):
        prices = _prices(question, late_us)._replace(longest_us=cap_us)
        least, most = question.least_replicas, max(question.most_replicas, question.replicas)
        times = question.times_us, question.takes_us, question.ticks_us
        found.append(pooled(*times, prices, least, most, question.replicas))
    value, late = max(found)
    return int(value), late


def _load(question: Question) -> Load:
    order = np.argsort(question.partition, kind="stable")
    first = np.searchsorted(question.partition[order], np.arange(question.partitions + 1))
    return Load(order, question.times_us[order], question.takes_us[order], first)


def _prices(question: Question, late_us: int) -> Prices:
    interval_us = int(np.diff(question.ticks_us).min(initial=question.duration_us))
    return Prices(
        until_us=question.duration_us,
        pause_us=question.pause_us,
        startup_us=-(-question.startup_us // interval_us) * interval_us,  # replicas are asked for at ticks
        target_us=question.target_us,
        late_us=late_us,
        longest_us=int(question.takes_us.max()),
    )


def _states(question: Question) -> States:
    """Return all placements; where a start-up costs, each also with replicas that stay without any partition."""
    rows = []
    most = min(question.most_replicas, max(question.partitions, question.least_replicas, question.replicas))
    for placement in _placements(question.partitions):
        least = max(question.least_replicas, max(placement) + 1)
        idle = most if question.startup_us or question.replicas > least else least
        rows += [(placement, replicas) for replicas in range(least, min(idle, most) + 1)]
    member, replicas = zip(*rows, strict=True)
    return States(np.array(member, np.int64), np.array(replicas, np.int64))


def _placements(items: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to put items into bins, as the bin of each; bins are numbered as they appear."""
    ways: list[tuple[int, ...]] = [()]
    for _ in range(items):
        ways = [(*way, one) for way in ways for one in range(max(way, default=-1) + 2)]
    yield from ways


def _initial(question: Question, states: States) -> int:
    """Return the state before the first tick."""
    placement = _first_bins(question)
    here = (states.member == placement).all(axis=1) & (states.replicas >= min(question.replicas, len(placement)))
    return int(np.flatnonzero(here)[0])


def _first_bins(question: Question) -> Ints:
    """Return the bin of each partition before the first tick; bins are numbered as they appear."""
    bins: dict[int, int] = {}
    return np.array([bins.setdefault(owner, len(bins)) for owner in question.owners], np.int64)


def _trivial(question: Question, began_s: float) -> Optimum:
    replicas = question.least_replicas if len(question.ticks_us) else question.replicas
    least = replicas * question.duration_us / MINUTE_US
    return Optimum(
        optimum_replica_minutes=least,
        late=0,
        lower=least,
        lower_none_late=least,
        method="no event",
        wall_s=time.perf_counter() - began_s,
    )


def _method(question: Question, *, proven: bool, late: int) -> str:
    """Return in words how both ends were found."""
    exact = question.partitions <= EXACT
    which = "every placement" if exact else f"placements of a local search in {ROUNDS} rounds"
    how = f"dynamic programming over {which} at {len(question.ticks_us)} ticks"
    what = "least with none late, proven" if proven else "best schedule found" + (f", {late} late" if late else "")
    return (
        f"{how}: {what}; lower end: late events at a price (Lagrange){'' if exact else ', one queue for all replicas'}"
    )
