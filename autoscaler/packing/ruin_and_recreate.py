"""A search for a cheaper assignment: it empties a few consumers, places what they had again, and keeps what is better.

Ruin and recreate: Schrimpf, Schneider, Stamm-Wilbrandt, Dueck 2000. The cost is what moves, what consumers are worth,
and what little room is likely to bring. The loops are compiled.
"""

from math import erfc, exp, sqrt
from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.packing.any_fit import NONE, Loads, Ranks

SHED: Final = 0.1
"""What an overflow moves beside the smallest partition, in capacities: the consumer that receives it may overflow."""
NEGLIGIBLE: Final = 5.0
"""Standard deviations: beyond it no overflow is expected."""
HEAT: Final = 0.03
"""How much worse an accepted trial may be at first, in capacities of a consumer (with probability 1/e); 0 at last."""
MOST_RUINED: Final = 2
PLACED: Final = 5
"""How many partitions a trial places; one that places more counts as several, so that the time does not grow."""
EPSILON: Final = 1e-9
"""In capacities: less is a rounding error, not a gain."""
OWNED, HELD, SMALLEST, RISK = 0, 1, 2, 3


class Prices(NamedTuple):
    """What an assignment costs besides the rate that moves, in the unit of rates."""

    capacity: float
    """Of a consumer: no cost, but the limit."""
    consumer: float
    """For each consumer that owns something."""
    swing: float
    """Standard deviation of the change of one partition from call to call; 0: do not look ahead."""
    caution: float
    """Weight of what is expected to have to move next time."""


class Assignment(NamedTuple):
    """Who owns what, and sums by consumer, kept up to date. Partitions of a consumer are a linked list."""

    owner: Ranks
    first: Ranks
    """Consumer → the partition that came last, or NONE."""
    following: Ranks
    """Partition → the one of the same consumer that came before it, or NONE."""
    sums: Loads
    """Shape (consumers, 4): how many partitions each owns, their load, the smallest one, and the consumer's risk."""


@compiled
def risk(held: float, owned: float, smallest: float, prices: Prices) -> float:
    """Return what a consumer is expected to have to give away next time: P(overflow) × what solves it, weighted.

    Changes of partitions add up to a normal distribution. A single partition never has to leave.
    """
    if owned < 2 or prices.swing <= 0.0:
        return 0.0
    deviations = (prices.capacity - held) / (prices.swing * sqrt(owned))
    if deviations > NEGLIGIBLE:
        return 0.0
    return prices.caution * (smallest + SHED * prices.capacity) * 0.5 * erfc(deviations / sqrt(2.0))


@compiled
def assigned(owner: Ranks, loads: Loads, consumers: int, prices: Prices) -> Assignment:
    """Return the assignment with its sums; every partition has an owner."""
    made = Assignment(owner.copy(), np.full(consumers, NONE), np.full(loads.size, NONE), np.zeros((consumers, 4)))
    made.sums[:, SMALLEST] = np.inf
    for partition in range(loads.size):
        give(made, partition, loads[partition], owner[partition], prices)
    return made


@compiled
def give(made: Assignment, partition: int, load: float, consumer: int, prices: Prices) -> None:
    """Let a consumer own a partition that belongs to nobody."""
    made.owner[partition] = consumer
    made.following[partition] = made.first[consumer]
    made.first[consumer] = partition
    sums = made.sums[consumer]
    sums[HELD] += load
    sums[OWNED] += 1
    sums[SMALLEST] = min(sums[SMALLEST], load)
    sums[RISK] = risk(sums[HELD], sums[OWNED], sums[SMALLEST], prices)


@compiled
def take_all(made: Assignment, consumer: int, taken: Ranks, count: int) -> int:
    """Empty a consumer; add what it had to the `count` that are in `taken`, and return how many are there then.

    `owner` still says who had it.
    """
    partition = made.first[consumer]
    while partition != NONE:
        taken[count] = partition
        count += 1
        partition = made.following[partition]
    made.first[consumer] = NONE
    made.sums[consumer] = 0.0
    made.sums[consumer, SMALLEST] = np.inf
    return count


@compiled
def restore(made: Assignment, saved: Assignment) -> None:
    """Make `made` equal to what was saved of it."""
    made.owner[:] = saved.owner
    made.first[:] = saved.first
    made.following[:] = saved.following
    made.sums[:] = saved.sums


@compiled
def cost_of(made: Assignment, consumer: int, prices: Prices) -> float:
    """Return what a consumer costs by being there: 0 when it owns nothing."""
    return prices.consumer + made.sums[consumer, RISK] if made.sums[consumer, OWNED] else 0.0


@compiled
def cost_of_moves(made: Assignment, partitions: Ranks, before: Ranks, loads: Loads) -> float:
    """Return the rate of those partitions that have another owner than before."""
    cost = 0.0
    for partition in partitions:
        if before[partition] != NONE and before[partition] != made.owner[partition]:
            cost += loads[partition]
    return cost


@compiled
def total_cost(made: Assignment, before: Ranks, loads: Loads, prices: Prices) -> float:
    """Return what all consumers cost, and the rate that moves."""
    cost = 0.0
    for consumer in range(made.sums.shape[0]):
        cost += cost_of(made, consumer, prices)
    return cost + cost_of_moves(made, np.arange(loads.size), before, loads)


@compiled
def cost_of_joining(made: Assignment, consumer: int, load: float, prices: Prices) -> float:
    """Return what a consumer costs more when it takes a partition; infinity where it cannot."""
    sums = made.sums[consumer]
    if sums[OWNED] == 0:
        return prices.consumer
    if sums[HELD] + load > prices.capacity:
        return np.inf
    return float(risk(sums[HELD] + load, sums[OWNED] + 1, min(sums[SMALLEST], load), prices) - sums[RISK])


@compiled
def cheapest(made: Assignment, slots: Ranks, load: float, home: int, prices: Prices) -> tuple[int, float]:
    """Return the consumer where a partition costs least, and that cost; NONE where no slot can take it.

    home: its owner before, NONE for a new one. slots: consumers that may be used. Of those that own nothing only the
    first is looked at: they cost the same. Ties: home, then the first of `slots`.
    """
    chosen, least, move, seen_empty = NONE, np.inf, 0.0, False
    if home != NONE:
        move = load
        least = cost_of_joining(made, home, load, prices)
        chosen = home if least < np.inf else NONE
    for one in slots:
        if least <= move:
            break  # a move costs the load, and joining hardly ever pays
        empty = made.sums[one, OWNED] == 0
        if one == home or (seen_empty and empty):
            continue
        seen_empty = seen_empty or empty
        cost = move + cost_of_joining(made, one, load, prices)
        if cost < least:
            chosen, least = one, cost
    return chosen, least


@compiled
def place_again(
    made: Assignment, taken: Ranks, keys: Loads, before: Ranks, loads: Loads, slots: Ranks, prices: Prices
) -> float:
    """Give what was taken to whoever takes it cheapest, smallest key first; return the cost, infinite without room."""
    cost = 0.0
    for partition in taken[np.argsort(keys)]:
        consumer, more = cheapest(made, slots, loads[partition], before[partition], prices)
        if consumer == NONE:
            return np.inf
        cost += more
        give(made, partition, loads[partition], consumer, prices)
    return cost


@compiled
def empty_one(made: Assignment, before: Ranks, loads: Loads, slots: Ranks, prices: Prices) -> bool:
    """Empty the least loaded consumer whose partitions all fit elsewhere, if that costs less than a consumer.

    Returns whether there was one.
    """
    room = np.empty(loads.size, np.int64)
    saved = Assignment(made.owner.copy(), made.first.copy(), made.following.copy(), made.sums.copy())
    for consumer in slots[np.argsort(made.sums[slots, HELD])]:
        if made.sums[consumer, OWNED] == 0:
            continue
        if made.sums[consumer, HELD] >= prices.consumer:
            return False
        spared = cost_of(made, consumer, prices)
        taken = room[: take_all(made, consumer, room, 0)]
        spared += cost_of_moves(made, taken, before, loads)
        cost = place_again(made, taken, -loads[taken], before, loads, slots, prices)
        if made.sums[consumer, OWNED] == 0 and cost < spared - EPSILON * prices.capacity:
            return True
        restore(made, saved)
    return False


@compiled
def rebuild(
    made: Assignment,
    before: Ranks,
    loads: Loads,
    slots: Ranks,
    prices: Prices,
    trials: int,
    chance: np.random.Generator,
) -> Ranks:
    """Return the owners of the cheapest assignment met in so many trials, each of which starts from the last accepted.

    trials: of PLACED partitions each, or fewer of more.
    before: owners that do not count as moves. made: where to start; it is changed.
    """
    best = made.owner.copy()
    cost, least, spent = 0.0, 0.0, 0.0
    room = np.empty(loads.size, np.int64)
    saved = Assignment(made.owner.copy(), made.first.copy(), made.following.copy(), made.sums.copy())
    while spent < trials:
        heat = HEAT * prices.capacity * (1 - spent / trials)
        count, spared = ruin(made, room, before, loads, prices, chance)
        taken = room[:count]
        spent += max(1.0, count / PLACED)
        spread = chance.random()
        keys = np.empty(count)
        for at in range(count):
            keys[at] = -loads[taken[at]] * (1 - spread * chance.random())
        change = place_again(made, taken, keys, before, loads, slots, prices) - spared
        if change == np.inf or (change > 0 and chance.random() >= exp(-change / heat)):
            restore(made, saved)
            continue
        restore(saved, made)
        cost += change
        if cost < least - EPSILON * prices.capacity:
            best[:] = made.owner
            least = cost
    return best


@compiled
def ruin(
    made: Assignment, taken: Ranks, before: Ranks, loads: Loads, prices: Prices, chance: np.random.Generator
) -> tuple[int, float]:
    """Empty the owner of some partition, rather of one that moves, its owner before, and a few others.

    Returns how many partitions are in `taken` then, and what they cost where they were.
    """
    partition = chance.integers(0, loads.size)
    for _ in range(8):
        if made.owner[partition] != before[partition]:
            break
        partition = chance.integers(0, loads.size)
    others = chance.integers(0, MOST_RUINED)
    count, spared = 0, 0.0
    for number in range(2 + others):
        if number == 0:
            consumer = made.owner[partition]
        elif number == 1:
            consumer = before[partition]
        else:
            consumer = made.owner[chance.integers(0, loads.size)]
        if consumer == NONE or made.sums[consumer, OWNED] == 0:
            continue
        spared += cost_of(made, consumer, prices)
        count = take_all(made, consumer, taken, count)
    return count, spared + cost_of_moves(made, taken[:count], before, loads)
