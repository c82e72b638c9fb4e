"""A schedule: each event of a workload with its intended time and its partition. Pure and seeded."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from loadgen.shapes import IntArray

SECOND_US: Final = 1_000_000


class Spacing(StrEnum):
    """Where the events of a second lie inside it."""

    BURST = "burst"
    """All at its start."""
    SMOOTH = "smooth"
    """Evenly."""
    POISSON = "poisson"
    """Uniformly random."""


class Split(StrEnum):
    """Who gets which event."""

    EVEN = "even"
    """Event number k of the run goes to partition k mod n."""
    RANDOM = "random"
    """Each event to a uniformly random partition."""
    TABLE = "table"
    """As the workload's own table says."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Row k is event number k. Both arrays have one entry per event."""

    offset_us: IntArray
    """Intended time, µs after the start of the run; never falling."""
    partition: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offset_us)


def build_schedule(counts: IntArray, *, spacing: Spacing, split: Split, partitions: int, seed: int) -> Schedule:
    """Turn events per second into events.

    counts: shape (seconds,), or (seconds, partitions) with `Split.TABLE`.
    Raises ValueError where the shape of `counts` does not fit the split.
    """
    everything = int(counts.sum()) + 1
    chunks = list(schedule_chunks(counts, everything, spacing=spacing, split=split, partitions=partitions, seed=seed))
    return chunks[0] if chunks else Schedule(np.zeros(0, np.int64), np.zeros(0, np.int32))


def schedule_chunks(
    counts: IntArray, chunk_events: int, *, spacing: Spacing, split: Split, partitions: int, seed: int
) -> Iterator[Schedule]:
    """Yield the very events of `build_schedule` in parts of whole seconds, so that a run may exceed the memory.

    chunk_events: a part ends with the second in which it reaches so many events; events/s should be far below it.
    Raises ValueError where the shape of `counts` does not fit the split.
    """
    if counts.shape[1:] != ((partitions,) if split is Split.TABLE else ()):
        raise ValueError(f"split {split} over {partitions} partitions does not fit counts of shape {counts.shape}")
    inside, among = (np.random.default_rng(one) for one in np.random.SeedSequence(seed).spawn(2))
    per_second = counts.sum(axis=1) if split is Split.TABLE else counts
    first = 0
    for begin, end in _parts(per_second, chunk_events):
        total = per_second[begin:end]
        offset_us = np.repeat(np.arange(begin, end), total) * SECOND_US + _inside_us(total, spacing, inside)
        if split is Split.TABLE:
            labels = _interleaved(counts[begin:end])
        elif split is Split.RANDOM:
            labels = among.integers(0, partitions, len(offset_us))
        else:
            labels = np.arange(first, first + len(offset_us)) % partitions
        if spacing is Spacing.POISSON:
            order = np.argsort(offset_us, kind="stable")
            offset_us = offset_us[order]
            labels = labels[order] if split is Split.TABLE else labels  # a table's event keeps its own random time
        first += len(offset_us)
        yield Schedule(offset_us, labels.astype(np.int32))


def _parts(per_second: IntArray, chunk_events: int) -> Iterator[tuple[int, int]]:
    """Yield [begin, end) of successive seconds, as few as hold `chunk_events`."""
    reached = np.cumsum(per_second)
    begin, before = 0, 0
    while begin < len(reached):
        end = min(int(np.searchsorted(reached, before + chunk_events)) + 1, len(reached))
        yield begin, end
        begin, before = end, int(reached[end - 1])


def _rank(group_sizes: IntArray) -> IntArray:
    """0, 1, … within each group: sizes (2, 3) → 0 1 0 1 2."""
    starts = np.cumsum(group_sizes) - group_sizes
    return np.arange(group_sizes.sum()) - np.repeat(starts, group_sizes)


def _inside_us(per_second: IntArray, spacing: Spacing, random: np.random.Generator) -> IntArray:
    """Time inside the second, µs in [0, 1e6)."""
    total = int(per_second.sum())
    if spacing is Spacing.BURST:
        return np.zeros(total, dtype=np.int64)
    if spacing is Spacing.POISSON:
        return random.integers(0, SECOND_US, total)
    return _rank(per_second) * SECOND_US // np.repeat(per_second, per_second)


def _interleaved(counts: IntArray) -> IntArray:
    """Partition of each event, so that within a second every partition's events lie evenly among the others'.

    Event i of the c of a partition is sorted at (i + ½)/c; equal ones by partition.
    Example: counts (1, 2) → partitions 1 0 1.
    """
    flat = counts.ravel()
    second, partition = np.divmod(np.repeat(np.arange(flat.size), flat), counts.shape[1])
    place = second + (_rank(flat) + 0.5) / np.repeat(flat, flat)
    return np.asarray(partition[np.argsort(place, kind="stable")])
