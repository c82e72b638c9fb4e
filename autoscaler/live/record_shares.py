"""Share of a partition's offsets that hold events. The others are transaction markers and aborted records.

Replicas report how many offsets they passed without an event. The highest share of the last six windows (10 s each) is
used, so that a burst of aborted records never hides the load that follows it.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Final

from contracts.clock import monotonic_s
from contracts.progress import Progress

WINDOW_S: Final = 10.0
WINDOWS: Final = 6
MIN_OFFSETS: Final = 20  # passed in a window, before it counts


class RecordShares:
    """Learns the shares from progress reports."""

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
