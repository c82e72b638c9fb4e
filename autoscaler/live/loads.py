"""From offsets to what policies reason on: λ and lag of each partition, and how events lay between two ticks."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf
from typing import Final

import numpy as np

from autoscaler.live.offsets import OffsetReader, PartitionOffsets
from autoscaler.model import PartitionLoad, RecentArrivals, begin_offset_s
from autoscaler.ports import NotReadyError
from contracts.clock import wall_offset_s

SLOT_S: Final = 0.1
"""Resolution. A burst and an even stream of one second differ clearly."""
SAMPLES: Final = 4
"""Readings in a slot: they say when in it a burst came. Forty questions a second cost the broker little."""
UNKNOWN: Final = -1
ENDS_PER_S: Final = 20_000
"""End offsets asked for between two ticks: of more than 500 partitions there are fewer samples."""
ASKING: Final = 1 / 3
"""Share of the time that asking may take: brokers far away are asked less often, and all else goes on."""
SAME_S: Final = 1e-6
KEPT: Final = 10_000
"""Readings remembered at most: a decision interval of a minute, three times over."""


class ArrivalSamples:
    """End offsets that were sampled between two ticks, with their times, to be cut into slots."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        """By how much the wall clock, on whose beat slots lie, is ahead of the clock of the readings."""
        self._readings: deque[tuple[float, tuple[int, ...]]] = deque(maxlen=KEPT)

    def note(self, at_s: float, ends: Sequence[int | None]) -> None:
        """Take in one reading. One that goes back, or counts other partitions, makes those before it worthless."""
        known = tuple(UNKNOWN if end is None else end for end in ends)
        if self._readings:
            last_s, last = self._readings[-1]
            if at_s <= last_s:
                return
            if len(last) != len(known) or any(UNKNOWN < now < before for now, before in zip(known, last, strict=True)):
                self._readings.clear()
        self._readings.append((at_s, known))

    @property
    def newest_s(self) -> float:
        """When the last reading was; −∞ before any."""
        return self._readings[-1][0] if self._readings else -inf

    def ended_since(self, at_s: float) -> bool:
        """Tell whether a slot has ended between that time and the last reading."""
        return self.newest_s > at_s and (at_s == -inf or self._slot(self.newest_s) > self._slot(at_s))

    def due(self, now_s: float) -> bool:
        """Tell whether a sample of a slot has ended since the last reading."""
        return not self._readings or self._sample(now_s) > self._sample(self._readings[-1][0])

    def recent(self, until_s: float, interval_s: float, rates: Mapping[int, float]) -> RecentArrivals | None:
        """Return events by slot and partition over the interval that ended at `until_s`, when the last reading was.

        What arrived between two readings counts for the later one's slot: a burst is never taken apart. What came after
        the end of the last slot counts for it, too, and in the next interval no more. None where the readings do not
        reach back so far.
        rates: partition → λ; of one whose end was not always known, so many are taken to have come at once, at the end.
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
            if slot < first or at_s <= until_s - interval_s + SAME_S:
                break
            if UNKNOWN in before or UNKNOWN in after:
                unknown |= {number for number, both in enumerate(zip(before, after, strict=True)) if UNKNOWN in both}
            place = min(slot - first, slots - 1)
            counts[place] += (came := np.subtract(after, before))
            offsets_s.append(since_s - until_s + (slots - place) * SLOT_S)
            events.append(int(came.sum()))
            places.append(place)
        for partition in unknown:
            counts[:, partition] = 0
            counts[-1, partition] = round(rates.get(partition, 0.0) * interval_s)
        begin_s = 0.0 if unknown else begin_offset_s(np.array(offsets_s), np.array(events), np.array(places))
        return RecentArrivals(SLOT_S, counts, begin_s)

    def _slot(self, at_s: float) -> int:
        """Return the number of the slot that ended last. They end in the middle between tenths of a second.

        Loads tend to begin bursts at whole seconds: an end there would cut each in two, and two halves look harmless.
        """
        return floor((at_s + self.ahead_s) / SLOT_S - 0.5)

    def _sample(self, at_s: float) -> int:
        return floor((at_s + self.ahead_s) / SLOT_S * SAMPLES)


@dataclass(slots=True)
class _Known:
    """The newest that is known of a partition, and when it was read."""

    end: int | None = None
    end_s: float = 0.0
    rate: float | None = None
    done: int | None = None
    done_s: float = 0.0
    advanced_s: float = -inf
    """When the group was last seen to have committed further."""


class LoadReader:
    """Reads offsets once for each call and remembers what λ needs from call to call."""

    def __init__(self, offsets: OffsetReader, ahead_s: Callable[[], float] = wall_offset_s) -> None:
        self._offsets = offsets
        self._ahead_s = ahead_s
        self._sample_s = self._asked_s = -inf
        self._known: list[_Known] = []
        self._samples = ArrivalSamples()
        self._last_s = -inf
        self.recent: RecentArrivals | None = None
        """How events lay in the interval that the last `read` closed; None where that is not known."""
        self.unknown = ""
        """What the last `read` could not read, in words; empty: nothing."""

    @property
    def partitions(self) -> int:
        """How many partitions the topic has, as last seen; those of which nothing else is known yet included."""
        return self._offsets.partitions

    def count(self) -> int:
        """Ask how many partitions the topic has; without an answer, what was known before stands."""
        with suppress(NotReadyError):
            return self._offsets.count()
        return self.partitions

    def rates(self) -> Mapping[int, float]:
        """Return λ of the partitions for which it is known, events/s."""
        return {number: one.rate for number, one in enumerate(self._known) if one.rate is not None}

    def advanced(self, partition: int, within_s: float) -> bool:
        """Return whether the group was seen to commit further in that partition in the last so many seconds."""
        return partition < len(self._known) and self._last_s - self._known[partition].advanced_s <= within_s

    def arrivals(self) -> RecentArrivals | None:
        """Return how events lay since the last `read`; None where no slot has ended since then or was last asked."""
        newest_s = self._samples.newest_s
        if not self._samples.ended_since(max(self._asked_s, self._last_s)):
            return None
        self._asked_s = newest_s
        return self._samples.recent(newest_s, newest_s - self._last_s, {})

    def sample(self, now_s: float) -> None:
        """Look at the end offsets between two ticks, where that is due. What cannot be read is left out."""
        if self._samples.due(now_s) and now_s >= self._sample_s:
            at_s = now_s
            with suppress(NotReadyError):
                at_s, ends = self._offsets.ends()
                self._samples.note(at_s, ends)
            self._sample_s = now_s + max(self.partitions / ENDS_PER_S, (at_s - now_s) / ASKING)

    def read(self) -> tuple[float, tuple[PartitionLoad, ...]]:
        """Return when the end offsets were read (seconds, by the offsets' clock), and the load of every partition.

        What cannot be read is the worst that may be, marked with its age. Raises NotReadyError where nothing can be
        read, or a λ has only one reading to go by.
        """
        at_s, partitions = self._offsets.read()
        self._samples.ahead_s = self._ahead_s()
        self._samples.note(at_s, [one.end for one in partitions])
        del self._known[len(partitions) :]
        self._known += [_Known(end_s=at_s, done_s=at_s) for _ in range(len(partitions) - len(self._known))]
        for known, one in zip(self._known, partitions, strict=True):
            _learn(known, one, at_s)
        last_s, self._last_s, self.recent = self._last_s, at_s, None
        missing = [one.why for one in partitions if one.why]
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        self.unknown = f"{missing[0]}{more}; planned for the worst" if missing else ""
        single = [n for n, known in enumerate(self._known) if known.rate is None and partitions[n].end is not None]
        if single:
            listed = ", ".join(map(str, single[:5])) + (", …" if len(single) > 5 else "")
            raise NotReadyError(f"arrival rate of partition {listed}: it takes two readings of the end offset")
        rates = self.rates()
        typical = sum(rates.values()) / len(rates)
        if at_s > last_s > -inf:
            never_read = {n: typical for n, known in enumerate(self._known) if known.rate is None}
            self.recent = self._samples.recent(at_s, at_s - last_s, {**rates, **never_read})
        return at_s, tuple(_load(number, known, at_s, typical) for number, known in enumerate(self._known))


def _learn(known: _Known, now: PartitionOffsets, at_s: float) -> None:
    """Take in one reading."""
    if now.end is not None:
        if known.end is None or now.end < known.end:
            known.rate, known.end_s = None, at_s  # new, or a topic made anew
        elif at_s > known.end_s:
            known.rate, known.end_s = (now.end - known.end) / (at_s - known.end_s), at_s
        known.end = now.end
    if now.done is not None:
        if known.done is not None and now.done > known.done:
            known.advanced_s = at_s
        known.done, known.done_s = now.done, at_s
    elif known.done is None and now.beginning is not None:
        known.done = now.beginning  # the worst: nothing was ever served


def _load(number: int, known: _Known, at_s: float, typical: float) -> PartitionLoad:
    """Return the load of a partition; where it is not known now, the worst. typical: λ where it never was."""
    rate = typical if known.rate is None else known.rate
    if known.end is not None and known.done is not None and known.end_s == known.done_s == at_s:
        return PartitionLoad(number, rate, known.end - known.done)
    end, done, since_s = known.end or 0, known.done or 0, at_s - known.end_s if known.end is not None else 0.0
    worst = max(0, end - done) + ceil(rate * since_s)
    age_s = at_s - min(known.end_s, known.done_s)
    return PartitionLoad(number, rate, worst, max(age_s, 1e-3))
