"""Serve the live page: its HTML, the state, and the differences of the state as server-sent events."""

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec

from autoscaler.page.snapshot import difference, snapshot
from autoscaler.page.state import LiveState
from contracts.clock import monotonic_s, now_us
from contracts.journal import JournalEntry, TickRecord
from contracts.pages import Answer, not_found
from contracts.progress import Progress

INTERVAL_S: Final = 0.5  # shortest time between two differences
HEARTBEAT_S: Final = 10.0  # time without a difference after which a comment is sent: a broken connection is noticed
KEPT_DIFFERENCES: Final = 120
"""Number of the newest differences that a client which reconnects can ask for. An older client gets the whole state."""
RETRY_MS: Final = 1000
MAX_ENTRIES: Final = 200
MAX_PARTITION_STATES: Final = 100_000
"""Most entries, and most partitions in them together, that wait until a page is opened."""


class Feed:
    """Numbers the differences of a state. The state is read at most twice a second, and only while a page is open.

    read: returns the state. Its values must not change afterwards.
    """

    def __init__(self, read: Callable[[], dict[str, Any]], clock: Callable[[], float] = monotonic_s) -> None:
        self._read, self._clock = read, clock
        self.controls = False  # whether the page has the controls of a run
        self._lock = Lock()
        self._process = os.urandom(4).hex()
        """Part of each number: the numbers of an earlier process mean nothing."""
        self._state: dict[str, Any] = {}
        self._number = 0
        self._read_s = float("-inf")
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT_DIFFERENCES)

    def state(self) -> tuple[str, dict[str, Any]]:
        """Return the number of the state, and the state."""
        with self._lock:
            now_s = self._clock()
            if now_s - self._read_s >= INTERVAL_S:
                self._read_s = now_s
                state = self._read()
                if patch := difference(self._state, state):
                    self._number += 1
                    self._kept.append((self._number, msgspec.json.encode(patch)))
                    self._state = state
            return f"{self._process}-{self._number}", self._state

    def events(self, last_id: str, sleep: Callable[[float], object] = time.sleep) -> Iterator[bytes]:
        """Yield server-sent events: `state` first, or the differences since `last_id`; then a `patch` for each change.

        sleep: waits between two looks at the state.
        """
        yield b"retry: %d\n\n" % RETRY_MS
        process, _, number = last_id.rpartition("-")
        at = int(number) if process == self._process and re.fullmatch(r"\d{1,18}", number) else -1
        sent_s = self._clock()
        while True:
            now, state = self.state()
            with self._lock:
                kept, newest = list(self._kept), self._number
            parts = [(f"{self._process}-{one}", b"patch", patch) for one, patch in kept if one > at]
            if at < 0 or at > newest or newest - at > len(parts):
                parts, newest = [(now, b"state", msgspec.json.encode(state))], int(now.rpartition("-")[2])
            at = newest
            if parts:
                yield b"".join(b"id: %b\nevent: %b\ndata: %b\n\n" % (name.encode(), *part) for name, *part in parts)
                sent_s = self._clock()
            elif self._clock() - sent_s >= HEARTBEAT_S:
                yield b": still here\n\n"
                sent_s = self._clock()
            sleep(INTERVAL_S)

    def respond(self, path: str, _query: str) -> Answer:
        """Return the answer of a process that has no other pages."""
        return self.answer(path) or not_found(path, ["/", "/live/state", "/live/events"])

    def answer(self, path: str) -> Answer | None:
        """Return the answer for a path of the page; None: it is another path."""
        if path == "/":
            return html_answer(controls=self.controls)
        if path == "/live/state":
            number, state = self.state()
            return Answer(msgspec.json.encode({"id": number, **state}))
        if path == "/live/events":
            return Answer(b"", content_type="text/event-stream", stream=self.events)
        return None


class EntryFeed:
    """Keeps the newest journal entries of a controller, and folds them only while a page is open."""

    def __init__(
        self,
        latency_target_s: float,
        reports: Callable[[], Iterable[Progress]] = tuple,
        more: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """reports: returns the newest progress reports. more: returns further keys of the state."""
        self._waiting, self._cells = deque[JournalEntry](), 0
        self._state = LiveState(latency_target_s)
        self._reports, self._more = reports, more
        self.feed = Feed(self._read)

    def record(self, entry: JournalEntry) -> None:
        """Record one journal entry. While no page is open, only the newest ticks are kept."""
        self._waiting.append(entry)
        self._cells += _cells_of(entry)
        while len(self._waiting) > MAX_ENTRIES or (self._cells > MAX_PARTITION_STATES and len(self._waiting) > 2):
            oldest = self._waiting.popleft()
            self._cells -= _cells_of(oldest)
            if isinstance(oldest, TickRecord):  # the next tick repeats what it says, but not its cost
                self._state.count_cost(oldest)
            else:
                self._state.record_entry(oldest)

    def _read(self) -> dict[str, Any]:
        while self._waiting:
            self._state.record_entry(self._waiting.popleft())
        self._cells = 0
        for report in self._reports():
            self._state.record_progress(report, count_events=True)
        return snapshot(self._state, now_us(), **self._more())


def _cells_of(entry: JournalEntry) -> int:
    return len(entry.partitions) if isinstance(entry, TickRecord) else 0


@cache
def html_answer(config: str = '{"live":true,"runs":[]}', *, controls: bool = False) -> Answer:
    """Return the page as one HTML file, which loads nothing else. Its look is that of the report page.

    config: JSON with the sources: whether a process streams its state, and finished runs with name and file.
    controls: whether the page has the controls of a run.
    """
    report = find_spec("report")
    folder = Path(report.origin or "").parent / "page" if report else Path()
    files = {"uplot css": "vendor/uPlot.min.css", "base": "base.css", "css": "live.css"}
    files |= {"uplot js": "vendor/uPlot.iife.min.js", "charts": "charts.js", "lanes": "lanes.js", "costs": "costs.js"}
    files |= {"js": "live.js"} | ({"controls": "controls.html"} if controls else {})
    text = (folder / "live.html").read_text(encoding="utf-8").replace("/* config */", config.replace("<", "\\u003c"))
    text = text.replace("<!-- controls -->", "/* controls */" if controls else "")
    for mark, name in files.items():
        text = text.replace(f"/* {mark} */", (folder / name).read_text(encoding="utf-8"))
    return Answer(text.encode(), content_type="text/html; charset=utf-8")
