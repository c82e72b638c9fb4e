"""Whose each event is, and which partition its grouping gives it: what Order does live, done for a whole schedule."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from contracts.events import Grouping
from grouping.source import Source
from loadgen.schedule import Schedule

CUSTOMERS: Final = 10_000


def customer_name(number: int) -> str:
    """Return what the customer is called in events, and grouped by."""
    return f"customer-{number:05d}"


@dataclass(frozen=True, slots=True)
class Keys:
    """Customers of a load, drawn by its seed."""

    seed: int
    skew: float = 0.0
    """Exponent of Zipf's law; 0: all alike."""
    grouping: Grouping = Grouping.EXPLICIT
    """By `explicit` the schedule's own partitions stay."""
    partitions: int = 1

    @property
    def needed(self) -> bool:
        """Whether they change anything in a schedule."""
        return self.skew > 0 or self.grouping is not Grouping.EXPLICIT

    def give(self, chunks: Iterator[Schedule]) -> Iterator[Schedule]:
        """Yield the parts of a schedule with a key for each event, and the partition which that brings.

        Keys that a schedule has are kept. One source chooses for all, and hears nothing back.
        """
        chance = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(4,)))
        weights = 1 / np.arange(1, CUSTOMERS + 1) ** self.skew
        edges = np.cumsum(weights / weights.sum())
        who = np.random.default_rng(self.seed).permutation(CUSTOMERS)
        source = None if self.grouping is Grouping.EXPLICIT else Source(self.grouping, self.partitions)
        for chunk in chunks:
            key = chunk.key
            if key is None:
                key = who[np.minimum(np.searchsorted(edges, chance.random(len(chunk))), CUSTOMERS - 1)]
            yield Schedule(chunk.offset_us, chunk.partition if source is None else _chosen(source, key), key)


def _chosen(source: Source, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    names = (customer_name(key) for key in (keys % CUSTOMERS).tolist())
    return np.fromiter((source.choose(name) for name in names), dtype=np.int32, count=len(keys))
