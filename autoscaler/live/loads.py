"""From offsets to what policies reason on: λ and lag of each partition."""

from collections.abc import Callable

from autoscaler.estimation import ArrivalRates
from autoscaler.live.offsets import OffsetReading
from autoscaler.model import PartitionLoad
from autoscaler.ports import NotReadyError


class LoadReader:
    """Reads offsets once for each call and remembers what λ needs from call to call."""

    def __init__(self, read_offsets: Callable[[], OffsetReading]) -> None:
        self._read_offsets = read_offsets
        self._rates = ArrivalRates()

    def read(self) -> tuple[float, tuple[PartitionLoad, ...]]:
        """Return when the end offsets were read (seconds since the epoch), and the load of every partition.

        Raises NotReadyError naming what is unknown: an offset, or a λ that has only one reading to go by.
        """
        reading = self._read_offsets()
        self._rates.observe(reading.at_s, {number: one.end for number, one in enumerate(reading.partitions)})
        if unknown := self._rates.unknown(range(len(reading.partitions))):
            listed = ", ".join(map(str, unknown[:5])) + (", …" if len(unknown) > 5 else "")
            raise NotReadyError(f"arrival rate of partition {listed}: it takes two readings of the end offset")
        rates = self._rates.rates()
        loads = (PartitionLoad(number, rates[number], one.lag) for number, one in enumerate(reading.partitions))
        return reading.at_s, tuple(loads)
