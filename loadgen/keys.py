"""Whose each event is, and its partition by the partitioner: as Order does live, for a whole schedule."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from grouping import Partitioner
from grouping.source import Source
from loadgen.faults import Fault
from loadgen.schedule import NO_KEY, SECOND_US, Schedule

CUSTOMERS: Final = 10_000


def customer_name(number: int) -> str:
    """Return what the customer is called in events, and grouped by: one name for each number."""
    return f"customer-{number:05d}"


@dataclass(frozen=True, slots=True)
class Keys:
    """Customers of a load, drawn by its seed."""

    seed: int
    skew: float = 0.0
    """Exponent of Zipf's law; 0: all alike."""
    partitioner: Partitioner = Partitioner.EXPLICIT
    """By `explicit` the schedule's own partitions stay."""
    partitions: int = 1
    hot: tuple[Fault, ...] = ()
    """Spells in which one customer brings a share of the events."""

    @property
    def have_effect(self) -> bool:
        """Whether they change anything in a schedule."""
        return self.skew > 0 or self.change_partitions

    @property
    def change_partitions(self) -> bool:
        """Whether they change its partitions."""
        return self.partitioner is not Partitioner.EXPLICIT or bool(self.hot)

    def assign_keys(self, chunks: Iterator[Schedule]) -> Iterator[Schedule]:
        """Yield the parts of a schedule with a key for each event, and the partition which that brings.

        Keys that a schedule has are kept; events without one get a customer. One source chooses for all, and hears
        nothing back.
        """
        chance = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(4,)))
        weights = 1 / np.arange(1, CUSTOMERS + 1) ** self.skew
        edges = np.cumsum(weights / weights.sum())
        who = np.random.default_rng(self.seed).permutation(CUSTOMERS)
        source = None if self.partitioner is Partitioner.EXPLICIT else Source(self.partitioner, self.partitions)
        suddenly = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(5,)))
        hottest = int(suddenly.integers(CUSTOMERS))
        for chunk in chunks:
            key, partition = chunk.key, chunk.partition
            nobody = np.ones(len(chunk), np.bool_) if key is None else key == NO_KEY
            drawn = who[np.minimum(np.searchsorted(edges, chance.random(nobody.sum())), CUSTOMERS - 1)]
            key = np.zeros(len(chunk), np.int64) if key is None else key.copy()
            key[nobody] = drawn
            for spell in self.hot:
                second = chunk.offset_us // SECOND_US
                affected_events = (second >= spell.begin_s) & (second < spell.end_s)
                affected_events &= suddenly.random(len(chunk)) < spell.amount
                key = np.where(affected_events, hottest, key)
                partition = np.where(affected_events, hottest % self.partitions, partition).astype(np.int32)
            yield Schedule(chunk.offset_us, partition if source is None else _chosen(source, key), key)


def _chosen(source: Source, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    names = map(customer_name, keys.tolist())
    return np.fromiter((source.choose(name) for name in names), dtype=np.int32, count=len(keys))
