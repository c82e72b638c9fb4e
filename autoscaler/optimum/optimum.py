"""The least replica-minutes that known events can be served for: a schedule that does it, and a proof of what cannot.

Up to five partitions have so few placements that dynamic programming tries all of them. For more partitions there is no
schedule, only a bound that no schedule is below: the work that must be done in time.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from autoscaler.optimum.schedule import Schedule, plans_of
from autoscaler.optimum.search import States, search
from autoscaler.optimum.serving import NEVER, Ints, Load, Prices

EXACT: Final = 5
"""Partitions whose placements are all tried: 52 of them."""
KEEP: Final = 3
"""Ways to have come to a placement, where queues or pauses outlive a tick; more than these gain W3 and W4 < 0.1 %."""
LATE_S: Final = (0.15, 1.6)
"""First price of a late event, replica-seconds, by which W1 and taxi are known best; and from one price to the next."""
MINUTE_US: Final = 60_000_000
RATHER_LATE_US: Final = 60_000_000
"""A replica-minute for each late event: what is paid where some must be late."""


@dataclass(frozen=True, kw_only=True)
class OptimumProblem:
    """What is to be served, by what rules."""

    times_us: Ints
    """When events are intended, by number; never falling."""
    partition: Ints
    takes_us: Ints
    partitions: int
    ticks_us: Ints
    duration_us: int
    """Replicas are paid for until then."""
    target_us: int
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

    optimum_replica_minutes: float | None
    """Of the cheapest schedule found in which no event is late, or as few as can be; None: see `why`."""
    late: int
    lower: float
    """Replica-minutes below which no schedule keeps the promise, which lets its share of events be late."""
    lower_none_late: float
    """Below which none keeps all events in time."""
    method: str
    why: str = ""
    wall_s: float


ScheduleSimulation = Callable[[Schedule], tuple[int, int]]
"""Carries a schedule out; returns replica-µs and late events."""


def optimum(
    problem: OptimumProblem, judge: ScheduleSimulation | None = None, *, prices: int = 2
) -> tuple[Optimum, Schedule]:
    """Return the least cost and the schedule that has it; beyond EXACT partitions only what nothing costs less than.

    judge: by whose account; None: by the search's own. prices: how many are tried for the lower end.
    """
    began_s = time.perf_counter()
    if not len(problem.times_us) or not len(problem.ticks_us) or problem.partitions > EXACT:
        return _unsearched(problem, began_s), ()
    with ThreadPoolExecutor() as threads:
        cheapest = threads.submit(_of_all, problem)
        priced, none_late = threads.submit(_lower, problem, prices), threads.submit(_least, problem, 0)
    cost_us, late, plans = cheapest.result()
    if judge is not None:
        cost_us, late = judge(plans)
    allowed = _allowed(problem)
    lower_us = max(priced.result(), _volume_us(problem, allowed))
    none_late_us = max(lower_us, none_late.result()[0], _volume_us(problem, 0))
    kept, none = late <= allowed, late == 0
    why = f"no schedule was found that keeps the promise: {late:,} events late in the best, {allowed:,} may be"
    found = Optimum(
        optimum_replica_minutes=cost_us / MINUTE_US if kept else None,
        late=late,
        lower=min(lower_us, cost_us if kept else lower_us) / MINUTE_US,
        lower_none_late=min(none_late_us, cost_us if none else none_late_us) / MINUTE_US,
        method=_method(problem, proven=none and cost_us <= none_late_us + 1, late=late),
        why="" if kept else why,
        wall_s=time.perf_counter() - began_s,
    )
    return found, plans


def _allowed(problem: OptimumProblem) -> int:
    return int(problem.late_share * len(problem.times_us) + 1e-6)


def _of_all(problem: OptimumProblem) -> tuple[int, int, Schedule]:
    """Return cost (replica-µs), late events and plans of the cheapest schedule of all placements.

    None of its events is late if that can be.
    """
    load, states, prices = _load(problem), _states(problem), _prices(problem, 0)
    initial = _initial(problem, states)
    gap_us = np.diff(np.unique(problem.times_us)).min(initial=problem.duration_us)
    waits = problem.target_us > gap_us or problem.pause_us >= np.diff(problem.ticks_us).min(initial=NEVER)
    ways = (1, KEEP) if waits else (1,)
    found = [search(load, states, problem.ticks_us, prices, initial, keep, False) for keep in ways]
    found = [one for one in found if one[0] >= 0]
    if not found:
        prices = _prices(problem, RATHER_LATE_US)
        found = [search(load, states, problem.ticks_us, prices, initial, keep, False) for keep in ways]
    value, late, path, kept = min(found, key=lambda one: one[0])
    times_us = problem.ticks_us.tolist()
    steps = zip(times_us, states.member[path].tolist(), states.replicas[path].tolist(), kept.tolist(), strict=True)
    return value - prices.late_us * late, late, plans_of(steps, problem.owners, problem.replicas, problem.startup_us)


def _lower(problem: OptimumProblem, prices: int) -> int:
    """Return what no schedule that keeps the promise is below.

    For any price the cheapest schedule with late events paid costs at most what one that keeps the promise costs, its
    late events paid (Lagrange).
    """
    allowed = _allowed(problem)
    best, low, high = 0, 0.0, float("inf")
    price_us, step = LATE_S[0] * 1e6, LATE_S[1]
    for _ in range(prices):
        value, late = _least(problem, round(price_us))
        best = max(best, value - round(price_us) * allowed)
        low, high = (price_us, high) if late > allowed else (low, price_us)
        price_us = (low * high) ** 0.5 if 0 < low < high < float("inf") else price_us * (step if low else 1 / step)
    return best


def _least(problem: OptimumProblem, late_us: int) -> tuple[int, int]:
    """Return the least value of any schedule, and how many are late; late_us 0: none is, and -1 if that cannot be."""
    states = _states(problem)
    prices, initial = _prices(problem, late_us), _initial(problem, states)
    value, late, _, _ = search(_load(problem), states, problem.ticks_us, prices, initial, 1, True)
    return value, late


def _volume_us(problem: OptimumProblem, allowed: int) -> int:
    """Return replica-µs that every schedule needs, of which at most `allowed` events are late, for the work alone.

    Between two ticks replicas cost at least what must be served between them: events that come after the one and are
    due before the other. The ticks at which the run is cut are those for which the sum is largest.
    """
    cuts_us = np.concatenate(([0], problem.ticks_us, [problem.duration_us]))
    work_us = np.concatenate(([0], np.cumsum(problem.takes_us)))
    come_us = work_us[np.searchsorted(problem.times_us, cuts_us)]
    due_us = work_us[np.searchsorted(problem.times_us, cuts_us - problem.target_us, side="right")]
    best_us, ahead_us = 0, 0
    for number in range(1, len(cuts_us)):
        least = problem.least_replicas if number > 1 else problem.replicas
        idle_us = best_us + least * int(cuts_us[number] - cuts_us[number - 1])
        best_us = max(idle_us, ahead_us + int(due_us[number]))
        ahead_us = max(ahead_us, best_us - int(come_us[number]))
    return best_us - int(np.sort(problem.takes_us)[::-1][:allowed].sum())


def _load(problem: OptimumProblem) -> Load:
    order = np.argsort(problem.partition, kind="stable")
    first = np.searchsorted(problem.partition[order], np.arange(problem.partitions + 1))
    return Load(order, problem.times_us[order], problem.takes_us[order], first)


def _prices(problem: OptimumProblem, late_us: int) -> Prices:
    interval_us = int(np.diff(problem.ticks_us).min(initial=problem.duration_us))
    return Prices(
        until_us=problem.duration_us,
        pause_us=problem.pause_us,
        startup_us=-(-problem.startup_us // interval_us) * interval_us,  # replicas are asked for at ticks
        target_us=problem.target_us,
        late_us=late_us,
        longest_us=int(problem.takes_us.max()),
    )


def _states(problem: OptimumProblem) -> States:
    """Return all placements; where a start-up costs, each also with replicas that stay without any partition."""
    rows = []
    most = min(problem.most_replicas, max(problem.partitions, problem.least_replicas, problem.replicas))
    for placement in _placements(problem.partitions):
        least = max(problem.least_replicas, max(placement) + 1)
        idle = most if problem.startup_us or problem.replicas > least else least
        rows += [(placement, replicas) for replicas in range(least, min(idle, most) + 1)]
    member, replicas = zip(*rows, strict=True)
    return States(np.array(member, np.int64), np.array(replicas, np.int64))


def _placements(items: int) -> Iterator[tuple[int, ...]]:
    ways: list[tuple[int, ...]] = [()]
    for _ in range(items):
        ways = [(*way, one) for way in ways for one in range(max(way, default=-1) + 2)]
    yield from ways


def _initial(problem: OptimumProblem, states: States) -> int:
    bins: dict[int, int] = {}
    placement = np.array([bins.setdefault(owner, len(bins)) for owner in problem.owners], np.int64)
    here = (states.member == placement).all(axis=1) & (states.replicas >= min(problem.replicas, len(placement)))
    return int(np.flatnonzero(here)[0])


def _unsearched(problem: OptimumProblem, began_s: float) -> Optimum:
    events = len(problem.times_us) and len(problem.ticks_us)
    replicas = problem.least_replicas if len(problem.ticks_us) else problem.replicas
    least = replicas * problem.duration_us / MINUTE_US
    return Optimum(
        optimum_replica_minutes=None if events else least,
        late=0,
        lower=_volume_us(problem, _allowed(problem)) / MINUTE_US if events else least,
        lower_none_late=_volume_us(problem, 0) / MINUTE_US if events else least,
        method="the work that must be done in time, whoever does it" if events else "no event",
        why=f"schedules are searched for up to {EXACT} partitions, not for {problem.partitions}" if events else "",
        wall_s=time.perf_counter() - began_s,
    )


def _method(problem: OptimumProblem, *, proven: bool, late: int) -> str:
    what = "least with none late, proven" if proven else "best schedule found" + (f", {late} late" if late else "")
    return (
        f"dynamic programming over every placement at {len(problem.ticks_us)} ticks: {what}; "
        "lower end: late events at a price (Lagrange), or the work alone"
    )
