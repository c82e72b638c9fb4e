"""Search for a cheaper assignment: empty a few consumers, place their partitions again, keep what is better.

Known as ruin and recreate (Schrimpf, Schneider, Stamm-Wilbrandt, Dueck 2000); its cost here is what moves, what
consumers are worth, and what little room is likely to bring. All of it compiled.
"""

from math import exp
from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.packing.any_fit import NONE, Loads, Ranks
from autoscaler.packing.assignment import HELD, OWNED, Assignment, Prices, cheapest, clear, cost_of, give

HEAT: Final = 0.03
"""How much worse an accepted trial may be at first, in capacities of a consumer (with probability 1/e); 0 at last."""
MOST_RUINED: Final = 2
PLACED: Final = 5
"""How many partitions a trial places; one that places more counts as several, so that the time does not grow."""
EPSILON: Final = 1e-9
"""In capacities: less is a rounding error, not a gain."""


class Trial(NamedTuple):
    """What a trial took away and gave, so that it can be undone. Entries as far as the trial counts."""

    taken: Ranks
    """Partitions in the order in which they were taken."""
    taken_from: Ranks
    given: Ranks
    """The same partitions in the order in which they were given."""
    sums: Loads
    """Those of the receiver before."""


@compiled
def trial_for(partitions: int) -> Trial:
    """Return room for one trial at a time."""
    return Trial(
        np.empty(partitions, np.int64),
        np.empty(partitions, np.int64),
        np.empty(partitions, np.int64),
        np.empty((partitions, 4)),
    )


@compiled
def take_all(made: Assignment, trial: Trial, taken: int, consumer: int) -> int:
    """Empty a consumer; return how many partitions the trial has taken so far."""
    partition = made.first[consumer]
    while partition != NONE:
        trial.taken[taken] = partition
        trial.taken_from[taken] = consumer
        taken += 1
        partition = made.following[partition]
    clear(made, consumer)
    return taken


@compiled
def place_again(
    made: Assignment, trial: Trial, keys: Loads, before: Ranks, loads: Loads, slots: Ranks, prices: Prices
) -> tuple[int, float]:
    """Give what was taken to whoever takes it cheapest, smallest key first; return how many were, and the cost.

    Fewer than there are keys: the next one found no room.
    """
    cost = 0.0
    order = np.argsort(keys)
    for at in range(keys.size):
        partition = trial.taken[order[at]]
        consumer, more = cheapest(made, slots, loads[partition], before[partition], prices)
        if consumer == NONE:
            return at, cost
        cost += more
        trial.given[at] = partition
        for sum_ in range(made.sums.shape[1]):
            trial.sums[at, sum_] = made.sums[consumer, sum_]
        give(made, partition, loads[partition], consumer, prices)
    return keys.size, cost


@compiled
def undo(made: Assignment, trial: Trial, taken: int, given: int, loads: Loads, prices: Prices) -> None:
    """Take back what was given, latest first, and return what was taken."""
    for at in range(given - 1, -1, -1):
        partition = trial.given[at]
        consumer = made.owner[partition]
        made.first[consumer] = made.following[partition]
        for sum_ in range(made.sums.shape[1]):
            made.sums[consumer, sum_] = trial.sums[at, sum_]
    for at in range(taken - 1, -1, -1):
        give(made, trial.taken[at], loads[trial.taken[at]], trial.taken_from[at], prices)


@compiled
def cost_of_moves(made: Assignment, trial: Trial, taken: int, before: Ranks, loads: Loads) -> float:
    """Return the rate of those taken that did not stay with their owner before."""
    cost = 0.0
    for at in range(taken):
        partition = trial.taken[at]
        if before[partition] != NONE and before[partition] != trial.taken_from[at]:
            cost += loads[partition]
    return cost


@compiled
def empty_one(made: Assignment, before: Ranks, loads: Loads, slots: Ranks, prices: Prices) -> bool:
    """Empty the least loaded consumer whose partitions all fit elsewhere, if that costs less than a consumer.

    Returns whether there was one.
    """
    trial = trial_for(loads.size)
    for consumer in slots[np.argsort(made.sums[slots, HELD])]:
        if made.sums[consumer, OWNED] == 0:
            continue
        if made.sums[consumer, HELD] >= prices.consumer:
            return False
        saved = cost_of(made, consumer, prices)
        taken = take_all(made, trial, 0, consumer)
        saved += cost_of_moves(made, trial, taken, before, loads)
        given, cost = place_again(made, trial, -loads[trial.taken[:taken]], before, loads, slots, prices)
        if given == taken and made.sums[consumer, OWNED] == 0 and cost < saved - EPSILON * prices.capacity:
            return True
        undo(made, trial, taken, given, loads, prices)
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
    cost, least = 0.0, 0.0
    trial = trial_for(loads.size)
    spent = 0.0
    while spent < trials:
        heat = HEAT * prices.capacity * (1 - spent / trials)
        taken, saved = ruin(made, trial, before, loads, prices, chance)
        spent += max(1.0, taken / PLACED)
        spread = chance.random()
        keys = np.empty(taken)
        for at in range(taken):
            keys[at] = -loads[trial.taken[at]] * (1 - spread * chance.random())
        given, paid = place_again(made, trial, keys, before, loads, slots, prices)
        change = paid - saved
        if given < taken or (change > 0 and chance.random() >= exp(-change / heat)):
            undo(made, trial, taken, given, loads, prices)
            continue
        cost += change
        if cost < least - EPSILON * prices.capacity:
            best[:] = made.owner
            least = cost
    return best


@compiled
def ruin(
    made: Assignment, trial: Trial, before: Ranks, loads: Loads, prices: Prices, chance: np.random.Generator
) -> tuple[int, float]:
    """Empty the owner of some partition, rather of one that moves, its owner before, and a few others.

    Returns how many partitions are without owner then, and what they cost where they were.
    """
    partition = chance.integers(0, loads.size)
    for _ in range(8):
        if made.owner[partition] != before[partition]:
            break
        partition = chance.integers(0, loads.size)
    others = chance.integers(0, MOST_RUINED)
    taken, saved = 0, 0.0
    for number in range(2 + others):
        if number == 0:
            consumer = made.owner[partition]
        elif number == 1:
            consumer = before[partition]
        else:
            consumer = made.owner[chance.integers(0, loads.size)]
        if consumer == NONE or made.sums[consumer, OWNED] == 0:
            continue
        saved += cost_of(made, consumer, prices)
        taken = take_all(made, trial, taken, consumer)
    return taken, saved + cost_of_moves(made, trial, taken, before, loads)
