"""From offsets to what policies reason on: λ and lag of each partition."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from autoscaler.estimation import ArrivalRates
from autoscaler.live.offsets import OffsetReading
from autoscaler.live.samples import ArrivalSamples
from autoscaler.model import PartitionLoad, RecentArrivals
from autoscaler.ports import NotReadyError


class Offsets(Protocol):
    """What reads offsets; see OffsetReader."""

    @property
    def partitions(self) -> int: ...  # noqa: D102
    def count(self) -> int: ...  # noqa: D102
    def read(self) -> OffsetReading: ...  # noqa: D102
    def ends(self) -> tuple[float, tuple[int, ...]]: ...  # noqa: D102


class LoadReader:
    """Reads offsets once for each call and remembers what λ needs from call to call."""

    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets
        self._rates = ArrivalRates()
        self._samples = ArrivalSamples()
        self._read_s: float | None = None
        self._recent: RecentArrivals | None = None

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
        return self._rates.rates()

    def sample(self, now_s: float) -> None:
        """Look at the end offsets between two ticks, where that is due. What cannot be read is left out."""
        if self._samples.due(now_s):
            with suppress(NotReadyError):
                self._samples.note(*self._offsets.ends())

    def recent(self) -> RecentArrivals | None:
        """Return how events lay in the interval that the last `read` closed; None where that is not known."""
        return self._recent

    def read(self) -> tuple[float, tuple[PartitionLoad, ...]]:
        """Return when the end offsets were read (seconds since the epoch), and the load of every partition.

        Raises NotReadyError naming what is unknown: an offset, or a λ that has only one reading to go by.
        """
        reading = self._offsets.read()
        self._samples.note(reading.at_s, [one.end for one in reading.partitions])
        self._recent = None
        if self._read_s is not None:
            self._recent = self._samples.recent(reading.at_s, reading.at_s - self._read_s)
        self._read_s = reading.at_s
        self._rates.observe(reading.at_s, {number: one.end for number, one in enumerate(reading.partitions)})
        if unknown := self._rates.unknown(range(len(reading.partitions))):
            listed = ", ".join(map(str, unknown[:5])) + (", …" if len(unknown) > 5 else "")
            raise NotReadyError(f"arrival rate of partition {listed}: it takes two readings of the end offset")
        rates = self._rates.rates()
        loads = (PartitionLoad(number, rates[number], one.lag) for number, one in enumerate(reading.partitions))
        return reading.at_s, tuple(loads)
