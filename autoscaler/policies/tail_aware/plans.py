"""The plans that are compared: the present one, and others with few moves."""

from collections.abc import Sequence
from heapq import heapreplace
from typing import Final, NamedTuple

import numpy as np

from autoscaler.jit import compiled
from autoscaler.packing.few_moves import fewest_moves, largest_first, relieved
from autoscaler.policies.tail_aware.arrivals import Floats, Ints
from autoscaler.policies.tail_aware.queues import Group

SLACKS: Final = (0.0, 0.1, 0.3)
"""Room of a replica above the lowest possible fill level. More room needs fewer moves."""
SEARCHED: Final = 12
"""Most partitions for which the plan with the fewest moves is searched, within SEARCH_STEPS."""
SEARCH_STEPS: Final = 20_000
PINNED: Final = 1e9
"""Weight of a partition whose handover is under way: another move would restart its pause."""


class Plans(NamedTuple):
    """Plans, in the order in which they were found."""

    owners: list[Ints]
    """Owner of each partition."""
    replicas: list[tuple[int, ...]]


def add_plans(found: Plans, group: Group, loads: Sequence[Floats], present: int, counts: Sequence[int]) -> None:
    """Add plans with these replica counts. loads: events by partition, by which plans are packed."""
    known = {(owners.tobytes(), replicas) for owners, replicas in zip(*found, strict=True)}
    for load in loads:
        order = largest_first(load)
        for count in counts:
            level = fill_level(load[order], count)
            for slack in SLACKS:
                owners, replicas = _placed(group, load, order, level * (1.001 + slack), present, count)
                if (key := (owners.tobytes(), replicas)) not in known:
                    known.add(key)
                    found.owners.append(owners)
                    found.replicas.append(replicas)


def fill_level(falling: Floats, count: int) -> float:
    """Return about the lowest load that the fullest replica can have. falling: loads, largest first.

    A partition that exceeds the mean of the others has a replica of its own and does not count.
    """
    alone, rest = 0, float(falling.sum())
    while alone < count - 1 and falling[alone] > rest / (count - alone):
        rest -= float(falling[alone])
        alone += 1
    return max(_spread(falling[alone:], count - alone), 1e-9)


@compiled
def _spread(falling: Floats, count: int) -> float:
    """Return the highest load if each partition goes to the replica with the least load."""
    heap = [(0.0, number) for number in range(count)]
    for load in falling:
        heapreplace(heap, (heap[0][0] + load, heap[0][1]))
    return max([load for load, _ in heap])


def _placed(
    group: Group, load: Floats, order: Ints, limit: float, present: int, count: int
) -> tuple[Ints, tuple[int, ...]]:
    """Return owners and replicas: `count` of them, none with more than `limit` if possible, with the fewest moves."""
    numbers = max(present, count)
    capacities = limit * group.rates[:numbers] / group.rates[-1]
    weights = load + np.where(group.in_handover_s > 0, PINNED, 0.0)
    if len(load) <= SEARCHED:
        owners, fits = fewest_moves(load, weights, group.owners, capacities, count, SEARCH_STEPS)
        if fits:
            holding = set(owners.tolist())
            spare = [one for one in range(numbers) if one not in holding]
            return owners, tuple(sorted([*holding, *spare[: count - len(holding)]]))
    closed = np.zeros(numbers, np.int64)
    if count < numbers:
        owned = group.owners >= 0
        held = np.bincount(group.owners[owned], weights[owned], minlength=numbers)
        closed[np.argsort(held, kind="stable")[: numbers - count]] = 1
    owners, _ = relieved(load, order, group.owners, capacities, closed)
    return owners, tuple(np.flatnonzero(closed == 0).tolist())
