"""Chooses customers of events and their partitions for a whole schedule. In a live run Order chooses the partitions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from loadgen.faults import Fault
from loadgen.schedule import NO_KEY, SECOND_US, Schedule
from partitioners import Partitioner
from partitioners.source import Source

CUSTOMERS: Final = 10_000


def customer_name(number: int) -> str:
    """Return the name of a customer in events. The partitioner gets this name as the key."""
    return f"customer-{number:05d}"


@dataclass(frozen=True, slots=True)
class Keys:
    """Customers of a load, chosen pseudo-randomly from its seed."""

    seed: int
    skew: float = 0.0
    """Exponent of Zipf's law; 0: uniform."""
    partitioner: Partitioner = Partitioner.EXPLICIT
    """Partitioner of the events. `explicit`: the partitions of the schedule stay."""
    partitions: int = 1
    hot: tuple[Fault, ...] = ()
    """Periods in which one customer has a fixed share of the events."""

    @property
    def have_effect(self) -> bool:
        """Whether the keys of a schedule have any effect on the run."""
        return self.skew > 0 or self.change_partitions

    @property
    def change_partitions(self) -> bool:
        """Whether the keys change the partitions of a schedule."""
        return self.partitioner is not Partitioner.EXPLICIT or bool(self.hot)

    def assign_keys(self, chunks: Iterator[Schedule]) -> Iterator[Schedule]:
        """Yield the parts of a schedule with a key and a partition for each event. Events without a key get a customer.

        A partitioner other than `explicit` chooses all partitions as a single source that gets no waiting times.
        """
        random = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(4,)))
        weights = 1 / np.arange(1, CUSTOMERS + 1) ** self.skew
        edges = np.cumsum(weights / weights.sum())
        customers = np.random.default_rng(self.seed).permutation(CUSTOMERS)
        source = None if self.partitioner is Partitioner.EXPLICIT else Source(self.partitioner, self.partitions)
        hot_random = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(5,)))
        hottest = int(hot_random.integers(CUSTOMERS))
        for chunk in chunks:
            key, partition = chunk.key, chunk.partition
            is_keyless = np.ones(len(chunk), np.bool_) if key is None else key == NO_KEY
            drawn = customers[np.minimum(np.searchsorted(edges, random.random(is_keyless.sum())), CUSTOMERS - 1)]
            key = np.zeros(len(chunk), np.int64) if key is None else key.copy()
            key[is_keyless] = drawn
            for fault in self.hot:
                second = chunk.offset_us // SECOND_US
                is_hot = (second >= fault.begin_s) & (second < fault.end_s)
                is_hot &= hot_random.random(len(chunk)) < fault.amount
                key = np.where(is_hot, hottest, key)
                partition = np.where(is_hot, hottest % self.partitions, partition).astype(np.int32)
            yield Schedule(chunk.offset_us, partition if source is None else _choose_partitions(source, key), key)


def _choose_partitions(source: Source, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    names = map(customer_name, keys.tolist())
    return np.fromiter((source.choose(name) for name in names), dtype=np.int32, count=len(keys))
