"""The least that any packer can move: exact, by dynamic programming, for so few partitions that all states fit.

A state is who shares a consumer with whom, and the loads; chance moves each load by one step, then the packer decides.
A packer that knows how loads wander, but not how they will, cannot do better in the long run than the one found here:
the bound of Odoni (1969) on the mean cost of value iteration closes from both sides.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from studies.packing.streams import CAPACITY, Stream

Floats = NDArray[np.float64]
Choices = NDArray[np.int64]
DISCOUNT: Final = 0.97
"""For the first rounds of value iteration, which come close sooner with it."""
DISCOUNTED_ROUNDS: Final = 120
MOST_ROUNDS: Final = 1000


@dataclass(frozen=True)
class Small:
    """Partitions whose loads wander by −step, 0 or +step, clipped to 0 … CAPACITY, all three as likely.

    step: a divisor of CAPACITY.
    """

    partitions: int
    step: int

    @cached_property
    def groupings(self) -> tuple[tuple[int, ...], ...]:
        """Every way to share consumers: the consumer of each partition, numbered as they appear."""
        return tuple(_groupings(self.partitions))

    @cached_property
    def loads(self) -> NDArray[np.int64]:
        """Return every combination of loads; shape (combinations, partitions)."""
        levels = range(0, CAPACITY + 1, self.step)
        return np.array(list(product(levels, repeat=self.partitions)), np.int64)

    def walk(self, iterations: int, seed: int) -> Stream:
        """Return one stream."""
        chance = np.random.default_rng(seed)
        loads = np.empty((iterations, self.partitions), np.int64)
        loads[0] = self.step * chance.integers(0, CAPACITY // self.step, self.partitions, endpoint=True)
        steps = self.step * chance.integers(-1, 1, (iterations, self.partitions), endpoint=True)
        for iteration in range(1, iterations):
            loads[iteration] = np.clip(loads[iteration - 1] + steps[iteration], 0, CAPACITY)
        order = tuple(range(self.partitions))
        return Stream(loads, order, np.tile(order, (iterations, 1)))

    def expected(self, values: Floats) -> Floats:
        """Return what `values` (grouping, combination) are worth before chance moves the loads."""
        levels = CAPACITY // self.step + 1
        chances = np.zeros((levels, levels))
        for step in (-1, 0, 1):
            chances[np.arange(levels), np.clip(np.arange(levels) + step, 0, levels - 1)] += 1 / 3
        cube = values.reshape(-1, *[levels] * self.partitions)
        for _ in range(self.partitions):
            cube = np.tensordot(cube, chances, axes=([1], [1]))  # the axis comes back as the last
        return cube.reshape(values.shape)


@dataclass(frozen=True, slots=True)
class Optimum:
    """The packer with the least mean of Rscore + consumer_rate × consumers."""

    small: Small
    choices: Choices
    """Shape (groupings, combinations): what follows from where."""
    least: float
    """No packer has a mean cost below."""
    reached: float
    """The mean cost of this one is not above."""

    def course(self, stream: Stream) -> NDArray[np.int64]:
        """Return the grouping of each iteration."""
        levels = CAPACITY // self.small.step + 1
        powers = levels ** np.arange(self.small.partitions - 1, -1, -1)
        found = np.empty(len(stream.loads), np.int64)
        at = len(self.small.groupings) - 1
        for iteration, combination in enumerate(stream.loads // self.small.step @ powers):
            found[iteration] = at = self.choices[at, combination]
        return found


def optimum(small: Small, consumer_rate: float, tolerance: float = 2e-3) -> Optimum:
    """Find the best packer by value iteration.

    consumer_rate: what a consumer costs in an iteration, in capacities moved. tolerance: between the two bounds.
    Raises ValueError where they do not come so close.
    """
    costs = _costs(small, consumer_rate)
    values = np.zeros((len(small.groupings), len(small.loads)))
    for number in range(MOST_ROUNDS):
        after = small.expected(values) * (DISCOUNT if number < DISCOUNTED_ROUNDS else 1.0)
        found, choices = np.empty_like(values), np.empty(values.shape, np.int64)
        for grouping, cost in enumerate(costs):
            total = cost + after
            choices[grouping] = total.argmin(axis=0)
            found[grouping] = total.min(axis=0)
        change = found - values
        if number >= DISCOUNTED_ROUNDS and change.max() - change.min() < tolerance:
            return Optimum(small, choices, float(change.min()), float(change.max()))
        values = found - found.min()
    raise ValueError(f"no optimum within {tolerance} after {MOST_ROUNDS} rounds")


def rscores(small: Small, course: NDArray[np.int64], loads: NDArray[np.int64]) -> Floats:
    """Return the load that moves in each iteration, in capacities, if consumers keep their names where they can."""
    found = np.zeros(len(course))
    for iteration in np.flatnonzero(np.diff(course)) + 1:
        before, after = (small.groupings[course[at]] for at in (iteration - 1, iteration))
        found[iteration] = _moved(before, after, loads[iteration : iteration + 1])[0]
    return found


def _costs(small: Small, consumer_rate: float) -> list[Floats]:
    """Return for each grouping before the cost of each after, shape (groupings, combinations): infinite if too full."""
    own = np.empty((len(small.groupings), len(small.loads)))
    for number, grouping in enumerate(small.groupings):
        held = np.stack([small.loads[:, np.equal(grouping, one)].sum(axis=1) for one in set(grouping)])
        own[number] = np.where((held <= CAPACITY).all(axis=0), consumer_rate * len(held), np.inf)
    return [
        own + np.stack([_moved(before, after, small.loads) for after in small.groupings]) for before in small.groupings
    ]


def _moved(before: tuple[int, ...], after: tuple[int, ...], loads: NDArray[np.int64]) -> Floats:
    """Return the load that moves, in capacities: the least over all names for the consumers after."""
    stays = [loads[:, list(kept)].sum(axis=1) for kept in _kept(before, after)]
    return np.asarray((loads.sum(axis=1) - np.max(stays, axis=0)) / CAPACITY, np.float64)


def _kept(before: tuple[int, ...], after: tuple[int, ...], consumer: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield the partitions that stay, for each way to give consumers before, from `consumer` on, to one after."""
    if consumer > max(before):
        yield ()
        return
    mine = [at for at, owner in enumerate(before) if owner == consumer]
    for name in {after[at] for at in mine}:
        stays = tuple(at for at in mine if after[at] == name)
        rest = tuple(-1 if one == name else one for one in after)  # a name is given once
        yield from (stays + more for more in _kept(before, rest, consumer + 1) if name >= 0)
    yield from _kept(before, after, consumer + 1)


def _groupings(partitions: int) -> Iterator[tuple[int, ...]]:
    if partitions == 0:
        yield ()
        return
    for grouping in _groupings(partitions - 1):
        for consumer in range(max(grouping, default=-1) + 2):
            yield (*grouping, consumer)
