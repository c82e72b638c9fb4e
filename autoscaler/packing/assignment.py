"""An assignment that a search changes step by step, and what it costs. All of it compiled."""

from math import erfc, sqrt
from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.packing.any_fit import NONE, Loads, Ranks

SHED: Final = 0.1
"""What an overflow moves beside the smallest partition, in capacities: the consumer that receives it may overflow."""

OWNED, HELD, SMALLEST, RISK = 0, 1, 2, 3
NEGLIGIBLE: Final = 5.0
"""Standard deviations: beyond it no overflow is expected."""


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
    """Return the assignment with its sums; partitions with owner NONE belong to nobody."""
    made = Assignment(
        owner.copy(),
        np.full(consumers, NONE),
        np.full(loads.size, NONE),
        np.zeros((consumers, 4)),
    )
    made.sums[:, SMALLEST] = np.inf
    for partition in range(loads.size):
        if owner[partition] != NONE:
            give(made, partition, loads[partition], owner[partition], prices)
    return made


@compiled
def give(made: Assignment, partition: int, load: float, consumer: int, prices: Prices) -> None:
    """Let a consumer own a partition that belongs to nobody."""
    made.owner[partition] = consumer
    made.following[partition] = made.first[consumer]
    made.first[consumer] = partition
    made.sums[consumer, HELD] += load
    made.sums[consumer, OWNED] += 1
    made.sums[consumer, SMALLEST] = min(made.sums[consumer, SMALLEST], load)
    made.sums[consumer, RISK] = risk(
        made.sums[consumer, HELD], made.sums[consumer, OWNED], made.sums[consumer, SMALLEST], prices
    )


@compiled
def clear(made: Assignment, consumer: int) -> None:
    """Take everything from a consumer; `owner` still says who had it."""
    made.first[consumer] = NONE
    made.sums[consumer, HELD] = 0.0
    made.sums[consumer, OWNED] = 0
    made.sums[consumer, SMALLEST] = np.inf
    made.sums[consumer, RISK] = 0.0


@compiled
def cost_of(made: Assignment, consumer: int, prices: Prices) -> float:
    """Return what a consumer costs by being there: 0 when it owns nothing."""
    return prices.consumer + made.sums[consumer, RISK] if made.sums[consumer, OWNED] else 0.0


@compiled
def total_cost(made: Assignment, before: Ranks, loads: Loads, prices: Prices) -> float:
    """Return what all consumers cost, and the rate that moves."""
    cost = 0.0
    for consumer in range(made.sums.shape[0]):
        cost += cost_of(made, consumer, prices)
    for partition in range(loads.size):
        if before[partition] != NONE and before[partition] != made.owner[partition]:
            cost += loads[partition]
    return cost


@compiled
def cost_of_joining(owned: float, held: float, smallest: float, risk_now: float, load: float, prices: Prices) -> float:
    """Return what a consumer in that state costs more when it takes a partition; infinity where it cannot."""
    if owned == 0:
        return prices.consumer
    if held + load > prices.capacity:
        return np.inf
    return risk(held + load, owned + 1, min(smallest, load), prices) - risk_now


@compiled
def cheapest(made: Assignment, slots: Ranks, load: float, home: int, prices: Prices) -> tuple[int, float]:
    """Return the consumer where a partition costs least, and that cost; NONE where no slot can take it.

    home: its owner before, NONE for a new one. slots: consumers that may be used. Of those that own nothing only the
    first is looked at: they cost the same. Ties: home, then the first of `slots`.
    """
    sums = made.sums
    chosen, least, move, seen_empty = NONE, np.inf, 0.0, False
    if home != NONE:
        move = load
        least = cost_of_joining(
            sums[home, OWNED], sums[home, HELD], sums[home, SMALLEST], sums[home, RISK], load, prices
        )
        chosen = home if least < np.inf else NONE
    for one in slots:
        if least <= move:
            break  # a move costs the load, and joining hardly ever pays
        if one == home or (seen_empty and sums[one, OWNED] == 0):
            continue
        seen_empty = seen_empty or sums[one, OWNED] == 0
        cost = move + cost_of_joining(
            sums[one, OWNED], sums[one, HELD], sums[one, SMALLEST], sums[one, RISK], load, prices
        )
        if cost < least:
            chosen, least = one, cost
    return chosen, least
