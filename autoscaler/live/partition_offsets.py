"""The offsets of a partition, as far as the answers of brokers are plausible, and the share of them with events."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from confluent_kafka import OFFSET_INVALID

from contracts.clock import monotonic_s
from contracts.progress import Progress

OPEN_TRANSACTION_S: Final = 10.0  # age from which it is reported; most end within a second
WINDOW_S: Final = 10.0
WINDOWS: Final = 6
MIN_OFFSETS: Final = 20  # passed in a window, before it counts
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


class RecordShares:
    """Learns which share of a partition's offsets hold events. The others are transaction markers and aborted records.

    Replicas report how many offsets they passed without an event. The highest share of the last six windows (10 s each)
    is used, so that a burst of aborted records never hides the load that follows it.
    """

    def __init__(self, clock: Callable[[], float] = monotonic_s) -> None:
        self._clock = clock
        self._seen: dict[int, tuple[str, int, int]] = {}
        """Partition → incarnation, position and skipped offsets of its newest report."""
        self._windows = defaultdict[int, deque[list[float]]](lambda: deque(maxlen=WINDOWS))
        """Partition → begin (seconds), offsets and events of the newest windows."""

    def record_report(self, report: Progress) -> None:
        """Add one report. A partition without skipped offsets has the share 1."""
        for partition, skipped in report.skipped.items():
            now, windows = (report.incarnation, report.positions.get(partition, 0), skipped), self._windows[partition]
            before, self._seen[partition] = self._seen.get(partition, now), now
            passed, empty = now[1] - before[1], skipped - before[2]
            if before[0] == report.incarnation and 0 <= empty <= passed:
                if not windows or (self._clock() - windows[-1][0] >= WINDOW_S and windows[-1][1] >= MIN_OFFSETS):
                    windows.append([self._clock(), 0, 0])
                windows[-1][1:] = windows[-1][1] + passed, windows[-1][2] + passed - empty

    def shares(self) -> Mapping[int, float]:
        """Return partition → share, for partitions where it is known to be below 1."""
        known = {p: [events / at for _, at, events in w if at >= MIN_OFFSETS] for p, w in self._windows.items()}
        return {partition: max(shares) for partition, shares in known.items() if shares and max(shares) < 1}
