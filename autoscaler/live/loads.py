"""Computes loads from offsets: arrival rate (λ) and lag of each partition, and arrivals by slot between two ticks."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf
from typing import Final

import numpy as np

from autoscaler.live.offsets import OffsetReader
from autoscaler.live.partition_offsets import PartitionOffsets
from autoscaler.live.problems import first_few
from autoscaler.model import PartitionLoad, RecentArrivals, begin_offset_s
from autoscaler.ports import NotReadyError
from contracts.clock import wall_offset_s

SLOT_S: Final = 0.1
"""Length of a slot, seconds. It is short enough to distinguish a burst from an even stream."""
SAMPLES_PER_SLOT: Final = 4
"""Readings in a slot. They locate a burst within it. A broker easily answers these forty requests a second."""
UNKNOWN_OFFSET: Final = -1
MAX_ENDS_PER_S: Final = 20_000
"""Most end offsets read between two ticks. With more than 500 partitions there are fewer samples."""
MAX_QUERY_TIME_SHARE: Final = 1 / 3
"""Largest share of the loop's time that reading may take. So distant brokers are sampled less often."""
TIME_TOLERANCE_S: Final = 1e-6
MAX_READINGS: Final = 10_000
"""Most readings that are kept. They cover three decision intervals of a minute."""


class ArrivalSamples:
    """End offsets sampled between two ticks, with their times. `recent` divides them into slots."""

    def __init__(self) -> None:
        self.shares: Mapping[int, float] = {}
        """Partition → share of its offsets that hold events, if below 1."""
        self.ahead_s = 0.0
        """Wall clock minus clock of the readings, seconds. Slots are aligned to the wall clock."""
        self._readings: deque[tuple[float, tuple[int, ...]]] = deque(maxlen=MAX_READINGS)

    def record(self, at_s: float, ends: Sequence[int | None]) -> None:
        """Add one reading. If an offset decreased or the partition count changed, drop all earlier readings."""
        known = tuple(UNKNOWN_OFFSET if end is None else end for end in ends)
        if self._readings:
            last_s, last = self._readings[-1]
            if at_s <= last_s:
                return
            pairs = zip(known, last, strict=False)
            if len(last) != len(known) or any(UNKNOWN_OFFSET < now < before for now, before in pairs):
                self._readings.clear()
        self._readings.append((at_s, known))

    @property
    def newest_s(self) -> float:
        """Time of the last reading; −∞ before the first."""
        return self._readings[-1][0] if self._readings else -inf

    def has_slot_ended_since(self, at_s: float) -> bool:
        """Return whether a slot has ended between `at_s` and the last reading."""
        return self.newest_s > at_s and (at_s == -inf or self._slot(self.newest_s) > self._slot(at_s))

    def is_due(self, now_s: float) -> bool:
        """Return whether it is time for the next reading."""
        return not self._readings or self._sample(now_s) > self._sample(self._readings[-1][0])

    def recent(self, until_s: float, interval_s: float, rates: Mapping[int, float]) -> RecentArrivals | None:
        """Return events by slot and partition over the interval that ended at `until_s`, the time of the last reading.

        Arrivals between two readings count for the slot of the later reading, so a burst is never split. Arrivals after
        the last slot also count for the last slot, but not for the next interval. None: there are too few readings.
        rates: partition → arrival rate (λ), events/s. If an end offset was unknown, λ × interval is in the last slot.
        """
        slots = max(1, round(interval_s / SLOT_S))
        first = self._slot(until_s) - slots + 1
        if len(self._readings) < 2 or self._slot(self._readings[0][0]) >= first:
            return None
        counts = np.zeros((slots, len(self._readings[-1][1])), np.int64)
        unknown: set[int] = set()
        offsets_s, events, places = list[float](), list[int](), list[int]()
        for (at_s, after), (since_s, before) in pairwise(reversed(self._readings)):
            slot = max(self._slot(since_s) + 1, self._slot(at_s))
            if slot < first or at_s <= until_s - interval_s + TIME_TOLERANCE_S:
                break
            if UNKNOWN_OFFSET in before or UNKNOWN_OFFSET in after:
                pairs = enumerate(zip(before, after, strict=True))
                unknown |= {number for number, pair in pairs if UNKNOWN_OFFSET in pair}
            place = min(slot - first, slots - 1)
            counts[place] += (arrived := np.subtract(after, before))
            offsets_s.append(since_s - until_s + (slots - place) * SLOT_S)
            events.append(int(arrived.sum()))
            places.append(place)
        for partition, share in self.shares.items():
            if 0 <= partition < counts.shape[1]:
                counts[:, partition] = np.diff(np.rint(counts[:, partition].cumsum() * share), prepend=0)
        for partition in unknown:
            counts[:, partition] = 0
            counts[-1, partition] = round(rates.get(partition, 0.0) * interval_s)
        begin_s = 0.0 if unknown else begin_offset_s(np.array(offsets_s), np.array(events), np.array(places))
        return RecentArrivals(SLOT_S, counts, begin_s)

    def _slot(self, at_s: float) -> int:
        """Return the number of the slot that ended last. Slots end halfway between tenths of a second.

        Bursts often begin at whole seconds: a slot that ended there would split each into two harmless halves.
        """
        return floor((at_s + self.ahead_s) / SLOT_S - 0.5)

    def _sample(self, at_s: float) -> int:
        return floor((at_s + self.ahead_s) / SLOT_S * SAMPLES_PER_SLOT)


@dataclass(slots=True)
class _PartitionState:
    """Newest known offsets of a partition, and when they were read."""

    end: int | None = None
    end_s: float = 0.0
    rate: float | None = None
    committed: int | None = None
    committed_s: float = 0.0
    advanced_s: float = -inf
    """When the committed offset last advanced."""


class LoadReader:
    """Reads offsets at each tick. Computes arrival rates (λ) from this and the previous reading."""

    def __init__(self, offsets: OffsetReader, ahead_s: Callable[[], float] = wall_offset_s) -> None:
        self._offsets, self._ahead_s = offsets, ahead_s
        self.shares: Callable[[], Mapping[int, float]] = dict
        """Returns partition → share of its offsets that hold events, if below 1."""
        self._sample_s = self._reported_until_s = -inf
        self._known: list[_PartitionState] = []
        self._samples = ArrivalSamples()
        self._last_s = -inf
        self.recent: RecentArrivals | None = None
        """Arrivals by slot in the interval that the last `read` closed; None: unknown."""
        self.missing_data = ""
        """Unreadable offsets of the last `read`, and the consequence; empty: none."""
        self.hidden = ""
        """Records behind open transactions; empty: none."""
        self.without_commit: frozenset[int] = frozenset()
        """Partitions whose lag is unknown and counts as 0: the group has no commit there."""

    @property
    def partitions(self) -> int:
        """Newest known number of partitions, including those without offsets yet."""
        return self._offsets.partitions

    def rates(self) -> dict[int, float]:
        """Return partition → arrival rate (λ), events/s, if known."""
        return {number: state.rate for number, state in enumerate(self._known) if state.rate is not None}

    def has_advanced(self, partition: int, within_s: float) -> bool:
        """Return whether the committed offset of the partition advanced in the last `within_s` seconds."""
        return partition < len(self._known) and self._last_s - self._known[partition].advanced_s <= within_s

    def arrivals(self) -> RecentArrivals | None:
        """Return arrivals by slot since the last `read`; None: no slot has ended since the last call."""
        newest_s = self._samples.newest_s
        if not self._samples.has_slot_ended_since(max(self._reported_until_s, self._last_s)):
            return None
        self._reported_until_s = newest_s
        return self._samples.recent(newest_s, newest_s - self._last_s, {})

    def sample(self, now_s: float) -> None:
        """Sample the end offsets between two ticks, if a sample is due. Unreadable offsets are skipped."""
        if self._samples.is_due(now_s) and now_s >= self._sample_s:
            at_s = now_s
            with suppress(NotReadyError):
                at_s, ends = self._offsets.read_ends()
                self._samples.record(at_s, ends)
            self._sample_s = now_s + max(self.partitions / MAX_ENDS_PER_S, (at_s - now_s) / MAX_QUERY_TIME_SHARE)

    def read(self) -> tuple[float, tuple[PartitionLoad, ...]]:
        """Return the time at which the end offsets were read (seconds), and the load of every partition.

        An unreadable lag is replaced by its upper bound and marked with its age. Raises NotReadyError if no end offset
        is known, or if only one end offset of a partition was read: its arrival rate (λ) needs two.
        """
        at_s, partitions = self._offsets.read()
        self._samples.ahead_s = self._ahead_s()
        self._samples.record(at_s, [partition.end for partition in partitions])
        del self._known[len(partitions) :]
        self._known += [_PartitionState(end_s=at_s, committed_s=at_s) for _ in partitions[len(self._known) :]]
        shares = self._samples.shares = self.shares()
        for number, (known, partition) in enumerate(zip(self._known, partitions, strict=True)):
            _learn(known, partition, at_s, shares.get(number, 1.0))
        last_s, self._last_s, self.recent = self._last_s, at_s, None
        self.hidden = first_few((partition.hidden for partition in partitions if partition.hidden), "; ")
        self.without_commit = frozenset(n for n, p in enumerate(partitions) if p.committed is None and not p.problem)
        missing = [partition.problem for partition in partitions if partition.problem]
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        self.missing_data = f"{missing[0]}{more}; planning for the worst case" if missing else ""
        single = [n for n, known in enumerate(self._known) if known.rate is None and partitions[n].end is not None]
        if single:
            listed = first_few(map(str, single), ", ")
            raise NotReadyError(f"arrival rate of partition {listed}: needs two readings of the end offset")
        rates = self.rates()
        typical = sum(rates.values()) / len(rates)
        if at_s > last_s > -inf:
            never_read = {n: typical for n, known in enumerate(self._known) if known.rate is None}
            self.recent = self._samples.recent(at_s, at_s - last_s, {**rates, **never_read})
        return at_s, tuple(_load(n, known, at_s, typical, shares.get(n, 1.0)) for n, known in enumerate(self._known))


def _learn(known: _PartitionState, now: PartitionOffsets, at_s: float, share: float) -> None:
    if now.end is not None:
        if known.end is None or now.end < known.end:
            known.rate, known.end_s = None, at_s  # a new partition, or a re-created topic
        elif at_s > known.end_s:
            known.rate, known.end_s = share * (now.end - known.end) / (at_s - known.end_s), at_s
        known.end = now.end
    if now.committed is not None or not now.problem:
        if now.committed is not None and known.committed is not None and now.committed > known.committed:
            known.advanced_s = at_s
        known.committed, known.committed_s = now.committed, at_s
    elif known.committed is None and now.beginning is not None:
        known.committed = now.beginning  # worst case: nothing was ever served


def _load(number: int, known: _PartitionState, at_s: float, typical: float, share: float) -> PartitionLoad:
    """Return the load of a partition, or its upper bound. typical: arrival rate (λ) of a partition never read."""
    rate = typical if known.rate is None else known.rate
    if known.end is not None and known.end_s == known.committed_s == at_s:
        lag = 0 if known.committed is None else ceil(share * (known.end - known.committed))
        return PartitionLoad(number, rate, lag)
    end, committed, since_s = known.end or 0, known.committed or 0, at_s - known.end_s if known.end is not None else 0.0
    worst = max(0, end - committed) + ceil(rate * since_s)
    age_s = at_s - min(known.end_s, known.committed_s)
    return PartitionLoad(number, rate, worst, max(age_s, 1e-3))
