"""Minimum replica-minutes for known events: the best schedule found, and a proven lower bound.

Up to five partitions have few enough placements for dynamic programming over all of them. For more partitions there is
no schedule, only a lower bound from the work that must be done in time.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, count, islice
from typing import Final

import msgspec
import numpy as np

from autoscaler.optimum.bounds import OptimumProblem, volume_us
from autoscaler.optimum.search import search
from autoscaler.optimum.serving import NEVER, NONE, Load, Prices
from autoscaler.optimum.transitions import States

MAX_PARTITIONS: Final = 5
"""Most partitions for which all placements are tried. Five partitions have 52 placements."""
MAX_LABELS: Final = 3
"""Labels of a state if queues or pauses outlast a tick. More would gain < 0.1 % in W3 and W4."""
FIRST_PRICE_S, PRICE_FACTOR = 0.15, 1.6
"""First price of a late event, replica-seconds (best bound for W1 and taxi), and factor from one price to the next."""
PRICES_TRIED: Final = 2
MINUTE_US: Final = 60_000_000
UNAVOIDABLE_LATE_US: Final = 60_000_000
"""Price of a late event if some must be late, replica-µs."""
PREFIX: Final = "payment"

Schedule = tuple[tuple[int, tuple[str, ...], tuple[str, ...]], ...]
"""(Time in µs, replicas from then on, owner of each partition), for each tick with a change."""
Step = tuple[int, Sequence[int], int, Sequence[int]]
"""(Time in µs, bin of each partition, replicas, previous bin of each bin's replica; NONE: another replica)."""


class Optimum(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of the best schedule found, and lower bounds."""

    optimum_replica_minutes: float | None
    """Cost of the cheapest schedule found with the fewest late events; None: see `why`."""
    late: int
    lower: float
    """Lower bound, replica-minutes, of schedules that meet the SLO with its allowed share of late events."""
    lower_none_late: float
    """Lower bound of schedules without late events, replica-minutes."""
    method: str
    why: str = ""
    wall_s: float


Simulate = Callable[[Schedule], tuple[int, int]]
"""Simulates a schedule. Returns replica-µs and late events."""


def optimum(problem: OptimumProblem, simulate: Simulate | None = None) -> tuple[Optimum, Schedule]:
    """Return the minimum cost and its schedule. Above MAX_PARTITIONS partitions: lower bound only.

    simulate: computes cost and late events of the schedule; None: those that the search computed are used.
    """
    began_s = time.perf_counter()
    if not len(problem.times_us) or not len(problem.ticks_us) or problem.partitions > MAX_PARTITIONS:
        return _unsearched(problem, began_s), ()
    with ThreadPoolExecutor() as threads:
        cheapest = threads.submit(_cheapest, problem)
        priced, none_late = threads.submit(_lower, problem), threads.submit(_least, problem, 0)
    cost_us, late, plans = cheapest.result()
    if simulate is not None:
        cost_us, late = simulate(plans)
    allowed = _allowed(problem)
    lower_us = max(priced.result(), volume_us(problem, allowed))
    none_late_us = max(lower_us, none_late.result()[0], volume_us(problem, 0))
    met, none = late <= allowed, late == 0
    why = f"no schedule was found that meets the SLO: {late:,} late events in the best one, {allowed:,} allowed"
    found = Optimum(
        optimum_replica_minutes=cost_us / MINUTE_US if met else None,
        late=late,
        lower=min(lower_us, cost_us if met else lower_us) / MINUTE_US,
        lower_none_late=min(none_late_us, cost_us if none else none_late_us) / MINUTE_US,
        method=_method(problem, proven=none and cost_us <= none_late_us + 1, late=late),
        why="" if met else why,
        wall_s=time.perf_counter() - began_s,
    )
    return found, plans


def _allowed(problem: OptimumProblem) -> int:
    return int(problem.late_share * len(problem.times_us) + 1e-6)


def _cheapest(problem: OptimumProblem) -> tuple[int, int, Schedule]:
    """Return cost (replica-µs), late events and plans of the cheapest schedule, without late events if possible."""
    load, states, prices = _load(problem), _states(problem), _prices(problem, 0)
    initial = _initial(problem, states)
    gap_us = np.diff(np.unique(problem.times_us)).min(initial=problem.duration_us)
    waits = problem.target_us > gap_us or problem.pause_us >= np.diff(problem.ticks_us).min(initial=NEVER)
    label_counts = (1, MAX_LABELS) if waits else (1,)
    found = [search(load, states, problem.ticks_us, prices, initial, keep, False) for keep in label_counts]
    found = [result for result in found if result[0] >= 0]
    if not found:
        prices = _prices(problem, UNAVOIDABLE_LATE_US)
        found = [search(load, states, problem.ticks_us, prices, initial, keep, False) for keep in label_counts]
    value, late, path, kept = min(found, key=lambda result: result[0])
    times_us = problem.ticks_us.tolist()
    steps = zip(times_us, states.member[path].tolist(), states.replicas[path].tolist(), kept.tolist(), strict=True)
    return value - prices.late_us * late, late, plans_of(steps, problem.owners, problem.replicas, problem.startup_us)


def _lower(problem: OptimumProblem) -> int:
    """Return a lower bound of all schedules that meet the SLO, replica-µs (Lagrangian relaxation).

    For any price of a late event, the cheapest schedule including this price costs at most as much as any schedule that
    meets the SLO, including the price of its late events.
    """
    allowed = _allowed(problem)
    best, low, high = 0, 0.0, float("inf")
    price_us = FIRST_PRICE_S * 1e6
    for _ in range(PRICES_TRIED):
        value, late = _least(problem, round(price_us))
        best = max(best, value - round(price_us) * allowed)
        low, high = (price_us, high) if late > allowed else (low, price_us)
        factor = PRICE_FACTOR if low else 1 / PRICE_FACTOR
        price_us = (low * high) ** 0.5 if 0 < low < high < float("inf") else price_us * factor
    return best


def _least(problem: OptimumProblem, late_us: int) -> tuple[int, int]:
    """Return the minimum value and its late events. late_us: price; 0: no event may be late (-1 if impossible)."""
    states = _states(problem)
    prices, initial = _prices(problem, late_us), _initial(problem, states)
    value, late, _, _ = search(_load(problem), states, problem.ticks_us, prices, initial, 1, True)
    return value, late


def _load(problem: OptimumProblem) -> Load:
    order = np.argsort(problem.partition, kind="stable")
    first = np.searchsorted(problem.partition[order], np.arange(problem.partitions + 1))
    return Load(order, problem.times_us[order], problem.takes_us[order], first)


def _prices(problem: OptimumProblem, late_us: int) -> Prices:
    interval_us = int(np.diff(problem.ticks_us).min(initial=problem.duration_us))
    return Prices(
        until_us=problem.duration_us,
        pause_us=problem.pause_us,
        startup_us=-(-problem.startup_us // interval_us) * interval_us,  # replicas are requested at ticks
        target_us=problem.target_us,
        late_us=late_us,
        longest_us=int(problem.takes_us.max()),
    )


def _states(problem: OptimumProblem) -> States:
    """Return all placements. If start-ups have a cost, each also with idle replicas."""
    rows, placements = [], list[tuple[int, ...]]([()])
    for _ in range(problem.partitions):
        placements = [(*bins, bin_) for bins in placements for bin_ in range(max(bins, default=-1) + 2)]
    most = min(problem.most_replicas, max(problem.partitions, problem.least_replicas, problem.replicas))
    for placement in placements:
        least = max(problem.least_replicas, max(placement) + 1)
        idle = most if problem.startup_us or problem.replicas > least else least
        rows += [(placement, replicas) for replicas in range(least, min(idle, most) + 1)]
    member, replicas = zip(*rows, strict=True)
    return States(np.array(member, np.int64), np.array(replicas, np.int64))


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
        lower=volume_us(problem, _allowed(problem)) / MINUTE_US if events else least,
        lower_none_late=volume_us(problem, 0) / MINUTE_US if events else least,
        method="the work that must be done in time, by any replica" if events else "no event",
        why=f"no search above {MAX_PARTITIONS} partitions, and the group has {problem.partitions}" if events else "",
        wall_s=time.perf_counter() - began_s,
    )


def _method(problem: OptimumProblem, *, proven: bool, late: int) -> str:
    what = "proven minimum, none late" if proven else "best schedule found" + (f", {late} late" if late else "")
    return (
        f"dynamic programming over every placement at {len(problem.ticks_us)} ticks: {what}; "
        "lower bound: late events at a price (Lagrange), or the work alone"
    )


def plans_of(path: Iterable[Step], first: Sequence[int], replicas: int, startup_us: int) -> Schedule:
    """Return the path as plans with named replicas. A replica is requested one start-up time before it serves.

    first: replica of each partition before the path. replicas: number of replicas before the path.
    """
    names = [f"{PREFIX}-{number}" for number in range(replicas)]
    serving = [names[owner] for owner in dict.fromkeys(first)]
    idle = [name for name in names if name not in serving]
    fresh = count(len(names))
    steps: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    for at_us, placement, paid, previous in path:
        bins = max(placement) + 1
        taken = [serving[before] if before != NONE else "" for before in previous[:bins]]
        spare = [*idle, *(name for name in serving if name not in taken)]
        free = chain(spare, (f"{PREFIX}-{number}" for number in fresh))
        serving = [name or next(free) for name in taken]
        idle = list(islice(free, paid - bins))
        owners = tuple(serving[bin_] for bin_ in placement)
        steps.append((at_us, (*serving, *idle), owners))
    return _requested_ahead(steps, startup_us)


def _requested_ahead(steps: Sequence[tuple[int, tuple[str, ...], tuple[str, ...]]], startup_us: int) -> Schedule:
    """Return the plans with the replicas that later plans need within a start-up time, without repetitions."""
    plans: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    times_us = [at_us for at_us, _, _ in steps]
    for index, (at_us, names, owners) in enumerate(steps):
        following_us = times_us[index + 1] if index + 1 < len(steps) else at_us
        soon = bisect_left(times_us, following_us + startup_us) if startup_us else index + 1
        replicas = tuple(dict.fromkeys(chain(names, *(more for _, more, _ in steps[index + 1 : soon]))))
        if not plans or plans[-1][1:] != (replicas, owners):
            plans.append((at_us, replicas, owners))
    return tuple(plans)
