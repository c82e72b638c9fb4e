"""From counters to rates. Fed with readings and their times; knows neither where they come from nor what time it is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkCounters:
    """What a replica says of its work. Both counters grow over one incarnation and start again with the next."""

    replica: str
    incarnation: str
    processed: int
    """Events served."""
    busy_us: int
    """Time spent serving them, waiting for input left out."""


@dataclass(frozen=True, slots=True)
class _Interval:
    """The last reading of one partition, and λ over the interval that it closed (None until there was one)."""

    at_s: float
    end_offset: int
    arrival_rate: float | None


class ArrivalRates:
    """λ of each partition, events/s, from its end offsets: events appended between its last two readings."""

    def __init__(self) -> None:
        self._intervals: dict[int, _Interval] = {}
        self._unknown: frozenset[int] = frozenset()

    def observe(self, at_s: float, end_offsets: Mapping[int, int | None]) -> None:
        """Take in one reading of all partitions.

        None: the partition could not be read. Its λ is unknown now, and spans the gap at the next reading.
        A partition that is left out has been deleted. An offset below the last one, or a clock that went back, means
        that there is nothing to compare with: λ is unknown until the reading after this one.
        """
        known = {partition: offset for partition, offset in end_offsets.items() if offset is not None}
        kept = {partition: last for partition, last in self._intervals.items() if partition in end_offsets}
        fresh = {partition: _next(kept.get(partition), at_s, offset) for partition, offset in known.items()}
        self._intervals = kept | fresh
        self._unknown = frozenset(end_offsets) - frozenset(known)

    def rates(self) -> dict[int, float]:
        """Return λ of the partitions for which it is known."""
        return {
            partition: last.arrival_rate
            for partition, last in sorted(self._intervals.items())
            if last.arrival_rate is not None and partition not in self._unknown
        }

    def unknown(self, partitions: Iterable[int]) -> tuple[int, ...]:
        """Return those of `partitions` whose λ is not known, in their order."""
        known = self.rates()
        return tuple(partition for partition in partitions if partition not in known)


def _next(last: _Interval | None, at_s: float, end_offset: int) -> _Interval:
    if last is None or end_offset < last.end_offset or at_s < last.at_s:
        return _Interval(at_s, end_offset, None)
    if at_s == last.at_s:
        return last  # read twice at one instant: the events in between belong to the next interval
    return _Interval(at_s, end_offset, (end_offset - last.end_offset) / (at_s - last.at_s))
