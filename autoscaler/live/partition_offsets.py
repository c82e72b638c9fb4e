"""The offsets of a partition, as far as the answers of brokers are plausible."""

from collections.abc import Callable
from typing import Final, NamedTuple

from confluent_kafka import OFFSET_INVALID

OPEN_TRANSACTION_S: Final = 10.0  # age from which it is reported; most end within a second
Answer = int | str | None
"""Answer of a broker: an offset, why it is unknown, or None."""


class PartitionOffsets(NamedTuple):
    """Offsets of one partition; None: unknown."""

    end: int | None
    committed: int | None
    """Next offset of the group. Without a commit: the beginning (our reset is `earliest`), None for a foreign group."""
    beginning: int | None = None
    problem: str = ""
    """Why an offset is unknown."""
    hidden: str = ""
    """Text if an open transaction has hidden records for long (they follow the last stable offset); else empty."""


class PlausibleOffsets:
    """Checks the offsets of one topic. is_foreign: as in OffsetReader."""

    def __init__(self, topic: str, clock: Callable[[], float], *, is_foreign: bool) -> None:
        self._topic, self._clock, self._is_foreign = topic, clock, is_foreign
        self._open: dict[int, tuple[int, float]] = {}
        """Partition → last stable offset, and since when it has stayed below the high watermark (seconds)."""

    def offsets(self, number: int, beginning: Answer, end: Answer, committed: Answer, high: Answer) -> PartitionOffsets:
        """Return the offsets, with None for the client's markers and for implausible values. high: high watermark."""
        hidden = ""
        following = beginning if committed == OFFSET_INVALID and not self._is_foreign else committed
        if isinstance(beginning, int) and isinstance(following, int) and isinstance(end, int):  # usual, so it is fast
            is_plain = 0 <= beginning <= following <= end
            if is_plain and not (isinstance(high, int) and high > end):
                self._open.pop(number, None)
                return PartitionOffsets(end, following, beginning)
        name = f"{self._topic}/{number}"
        if isinstance(end, int) and isinstance(high, int):
            hidden = self._note_hidden(number, end, high)
            if self._is_foreign and isinstance(committed, int) and committed <= high:
                end = max(end, committed)  # it reads uncommitted records
        problem = next((value for value in (end, beginning, committed) if isinstance(value, str)), "")
        if end is None:
            problem = problem or f"end offset of {name}: it has no leader"
        start, last, done = (value if isinstance(value, int) else None for value in (beginning, end, committed))
        if start is not None and last is not None and (start < 0 or last < start):
            problem, start, last = f"offsets of {name}: the broker answered {start} to {last}", None, None
        if done is not None and done != OFFSET_INVALID and (done < 0 or (last is not None and done > last)):
            problem, done = f"lag of {name}: committed offset {done} is not between 0 and the end offset {last}", None
        if done is not None and self._is_foreign:
            done = None if done < (start or 0) else done
        elif done is not None:
            done = start if done == OFFSET_INVALID else max(done, start or 0)
        return PartitionOffsets(last, done, start, problem, hidden)

    def _note_hidden(self, number: int, stable: int, high: int) -> str:
        if high <= stable or self._open.get(number, (None,))[0] != stable:
            self._open[number] = stable, self._clock()
        open_s = self._clock() - self._open[number][1]
        place = f"{high - stable} records of {self._topic}/{number}"
        return f"{place} follow an open transaction, for {open_s:.0f} s" if open_s >= OPEN_TRANSACTION_S else ""
