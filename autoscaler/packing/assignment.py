"""An assignment that a search changes step by step, and what it costs. All of it compiled."""

from math import erfc, sqrt
from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.packing.open_consumers import NONE, Loads, Ranks

SHED: Final = 0.1
"""What an overflow moves beside the smallest partition, in capacities: the consumer that receives it may overflow."""


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
    held: Loads
    owned: Ranks
    """How many partitions each consumer owns."""
    smallest: Loads


@compiled
def assigned(owner: Ranks, loads: Loads, consumers: int) -> Assignment:
    """Return the assignment with its sums; partitions with owner NONE belong to nobody."""
    made = Assignment(
        owner.copy(),
        np.full(consumers, NONE),
        np.full(loads.size, NONE),
        np.zeros(consumers),
        np.zeros(consumers, np.int64),
        np.full(consumers, np.inf),
    )
    for partition in range(loads.size):
        if owner[partition] != NONE:
            give(made, partition, loads[partition], owner[partition])
    return made


@compiled
def give(made: Assignment, partition: int, load: float, consumer: int) -> None:
    """Let a consumer own a partition that belongs to nobody."""
    made.owner[partition] = consumer
    made.following[partition] = made.first[consumer]
    made.first[consumer] = partition
    made.held[consumer] += load
    made.owned[consumer] += 1
    made.smallest[consumer] = min(made.smallest[consumer], load)


@compiled
def clear(made: Assignment, consumer: int) -> None:
    """Take everything from a consumer; `owner` still says who had it."""
    made.first[consumer] = NONE
    made.held[consumer] = 0.0
    made.owned[consumer] = 0
    made.smallest[consumer] = np.inf


@compiled
def risk(held: float, count: int, smallest: float, prices: Prices) -> float:
    """Return what a consumer is expected to have to give away next time: P(overflow) × what solves it, weighted.

    Changes of partitions add up to a normal distribution. A single partition never has to leave.
    """
    if count < 2 or prices.swing <= 0.0:
        return 0.0
    deviations = (prices.capacity - held) / (prices.swing * sqrt(count))
    return prices.caution * (smallest + SHED * prices.capacity) * 0.5 * erfc(deviations / sqrt(2.0))


@compiled
def cost_of(made: Assignment, consumer: int, prices: Prices) -> float:
    """Return what a consumer costs by being there: 0 when it owns nothing."""
    if made.owned[consumer] == 0:
        return 0.0
    return prices.consumer + risk(made.held[consumer], made.owned[consumer], made.smallest[consumer], prices)


@compiled
def total_cost(made: Assignment, before: Ranks, loads: Loads, prices: Prices) -> float:
    """Return what all consumers cost, and the rate that moves."""
    cost = 0.0
    for consumer in range(made.owned.size):
        cost += cost_of(made, consumer, prices)
    for partition in range(loads.size):
        if before[partition] != NONE and before[partition] != made.owner[partition]:
            cost += loads[partition]
    return cost


@compiled
def cost_of_joining(made: Assignment, consumer: int, load: float, prices: Prices) -> float:
    """Return what a consumer costs more when it takes a partition; infinity where it cannot."""
    owned, held, smallest = made.owned[consumer], made.held[consumer], made.smallest[consumer]
    if owned == 0:
        return prices.consumer
    if held + load > prices.capacity:
        return np.inf
    return risk(held + load, owned + 1, min(smallest, load), prices) - risk(held, owned, smallest, prices)


@compiled
def cheapest(made: Assignment, slots: Ranks, load: float, home: int, prices: Prices) -> tuple[int, float]:
    """Return the consumer where a partition costs least, and that cost; NONE where no slot can take it.

    home: its owner before, NONE for a new one. slots: consumers that may be used. Of those that own nothing only the
    first is looked at: they cost the same. Ties: home, then the first of `slots`.
    """
    chosen, least, move, seen_empty = NONE, np.inf, 0.0, False
    if home != NONE:
        least, move = cost_of_joining(made, home, load, prices), load
        chosen = home if least < np.inf else NONE
    for consumer in slots:
        if least <= move:
            break  # what moves costs its load at least
        if consumer == home or (seen_empty and made.owned[consumer] == 0):
            continue
        seen_empty = seen_empty or made.owned[consumer] == 0
        cost = move + cost_of_joining(made, consumer, load, prices)
        if cost < least:
            chosen, least = consumer, cost
    return chosen, least
