"""What serving known events costs at least, whoever serves which: one queue that all replicas serve as one. Compiled.

A relaxation, so no schedule is below it: m replicas are one that is m times as fast; moves take no time; a late event
need not be served at all. Where all events take as long, serving them in their order and dropping who would be late
loses the fewest. Where they do not, which to drop is another problem; there any *part* of an event may be dropped, for
its share of a late event (its time over the longest), and events longer than `longest_us` take no more than that.
"""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from autoscaler.optimum.serving import NEVER, Ints, Prices

WAYS: Final = 500
"""To have come to a count; where there are more, two become one as good as both."""

Floats = NDArray[np.float64]


class _Ways(NamedTuple):
    """By count and way."""

    many: Ints
    """By count: how many there are."""
    value: Floats
    """Replica-µs."""
    late: Floats
    following: Ints
    """The next event to be served."""
    free: Floats
    """From when on, µs."""
    slack: Floats
    """µs of work that those that left could have finished before, since when the queue was never empty. Who leaves
    finishes its event, and is paid for that: it is bought where it keeps an event in time, and only there matters."""


@compiled
def _serve(
    time: Ints,
    take: Ints,
    prices: Prices,
    alike: bool,
    speed: int,
    end_us: float,
    event: int,
    free_us: float,
    slack_us: float,
) -> tuple[float, float, int, float, float]:
    """Serve all that can begin before `end_us`.

    Returns how many are late, the work bought, the next event, when it may begin, and the slack that is left.
    """
    late, bought_us = 0.0, 0.0
    while event < len(time):
        start_us = max(free_us, float(time[event]))
        if start_us >= end_us:
            break
        slack_us = slack_us if free_us >= time[event] else 0.0
        work_us = min(take[event], prices.longest_us)
        over_us = work_us - (time[event] + prices.target_us - start_us) * speed
        if 0 < over_us <= slack_us or (over_us > 0 and not alike):
            buy_us = min(over_us, slack_us)
            bought_us += buy_us
            slack_us -= buy_us
            over_us -= buy_us
            start_us -= buy_us / speed
        if over_us <= 1e-6:
            free_us = start_us + work_us / speed
        elif alike:
            late += 1
        else:
            over_us = min(over_us, work_us)
            late += over_us / prices.longest_us
            free_us = start_us + (work_us - over_us) / speed
        event += 1
    return late, bought_us, event, free_us, slack_us


@compiled
def _add(
    ways: _Ways,
    done: Ints,
    speed: int,
    at: int,
    end_us: float,
    value: float,
    late: float,
    following: int,
    free_us: float,
    slack_us: float,
) -> None:
    """Keep this way to a count, unless another is as good; where none is free the nearest takes on what is better."""
    if free_us <= end_us:
        free_us, slack_us = end_us, 0.0
    nearest, apart = 0, np.inf
    for way in range(ways.many[at]):
        its, its_value, its_slack_us = ways.following[at, way], ways.value[at, way], ways.slack[at, way]
        ahead_us = done[its] - done[following] + (free_us - ways.free[at, way]) * speed
        if its >= following and its_value <= value and ahead_us >= 0:
            ways.slack[at, way] = max(its_slack_us, slack_us - ahead_us)
            return
        if its <= following and its_value >= value and ahead_us <= 0:
            nearest, apart, slack_us = way, -1.0, max(slack_us, its_slack_us + ahead_us)
            break
        if abs(its_value - value) + abs(ahead_us) < apart:
            nearest, apart = way, abs(its_value - value) + abs(ahead_us)
    if apart >= 0 and ways.many[at] < WAYS:
        nearest = ways.many[at]
        ways.many[at] += 1
    elif apart >= 0:
        value, late = min(value, ways.value[at, nearest]), min(late, ways.late[at, nearest])
        following, free_us = max(following, ways.following[at, nearest]), min(free_us, ways.free[at, nearest])
        slack_us = max(slack_us, ways.slack[at, nearest])
    ways.value[at, nearest], ways.late[at, nearest] = value, late
    ways.following[at, nearest], ways.free[at, nearest], ways.slack[at, nearest] = following, free_us, slack_us


@compiled
def pooled(
    time: Ints, take: Ints, ticks: Ints, prices: Prices, least: int, most: int, initial: int
) -> tuple[float, float]:
    """Return the least value of any schedule, replica-µs, and how many are late; value -1: none can do without.

    time, take: of the events, by number, µs; times never fall. least, most: replicas at any tick; initial: before.
    """
    alike = len(take) == 0 or bool(take.min() == take.max())
    counts = most - least + 1
    done = np.zeros(len(take) + 1, np.int64)
    done[1:] = np.minimum(take, prices.longest_us).cumsum()
    now = _Ways(
        np.zeros(counts, np.int64),
        np.zeros((counts, WAYS)),
        np.zeros((counts, WAYS)),
        np.zeros((counts, WAYS), np.int64),
        np.zeros((counts, WAYS)),
        np.zeros((counts, WAYS)),
    )
    then = _Ways(
        now.many.copy(), now.value.copy(), now.late.copy(), now.following.copy(), now.free.copy(), now.slack.copy()
    )
    late, _, event, free_us, _ = _serve(time, take, prices, alike, initial, float(ticks[0]), 0, 0.0, 0.0)
    if late and not prices.late_us:
        return -1.0, late
    value = initial * ticks[0] + late * prices.late_us
    _add(now, done, initial, max(0, initial - least), float(ticks[0]), value, late, event, free_us, 0.0)
    for tick in range(len(ticks)):
        begin_us = float(ticks[tick])
        end_us = float(ticks[tick + 1]) if tick + 1 < len(ticks) else float(NEVER)
        paid_us = min(prices.until_us, end_us) - begin_us
        soon = len(time) if tick + 1 == len(ticks) else np.searchsorted(time, ticks[tick + 1])
        then.many[:] = 0
        for carried in range(counts * WAYS):
            before, way = carried // WAYS, carried % WAYS
            if way >= now.many[before]:
                continue
            for at in range(counts):
                count, more = least + at, at - before
                if more > 0 and prices.startup_us and begin_us - prices.startup_us < ticks[0]:
                    break
                free_us = now.free[before, way]
                if more > 0:  # what is in service goes on as much faster
                    free_us = begin_us + (free_us - begin_us) * (least + before) / count
                slack_us = now.slack[before, way] + max(0, -more) * prices.longest_us
                late, bought_us, event, free_us, slack_us = _serve(
                    time, take, prices, alike, count, end_us, now.following[before, way], free_us, slack_us
                )
                late_here = late > 0
                if not late or prices.late_us:
                    value = now.value[before, way] + count * paid_us + max(0, more) * prices.startup_us
                    value += bought_us + late * prices.late_us
                    late += now.late[before, way]
                    _add(then, done, count, at, end_us, value, late, event, free_us, slack_us)
                if (
                    not (late_here or bought_us)
                    and event == soon
                    and free_us <= end_us
                    and prices.startup_us <= paid_us
                ):
                    break  # more replicas leave no less
        now, then = then, now
    best, late = -1.0, 0.0
    for at in range(counts):
        for way in range(now.many[at]):
            if best < 0 or now.value[at, way] < best:
                best, late = now.value[at, way], now.late[at, way]
    return best, late
