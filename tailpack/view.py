"""Show runs on the live page: a run that is going on, or finished and simulated runs, whose frames are replayed.

`python -m tailpack.view RUN_DIR` simulates the run's events under other policies, and prints the result as JSON.
"""

import gzip
import os
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from rich.console import Console

from autoscaler.page.feed import Feed, html_answer
from autoscaler.page.snapshot import difference, snapshot
from autoscaler.page.state import LiveState
from bench import BenchError
from contracts.children import python_module
from contracts.pages import Answer, PortTakenError, WebServer, not_found
from contracts.validation import DECODE_ERRORS, InvalidSettingsError
from report.run_info import EVENTS, RunInfo, load_run
from report.stored import is_complete, load_events, load_journal
from report.table import NONE
from tailpack.errors import TailpackError

PORT: Final = 8099
"""Port of the page; if it is taken, a free one."""
DEMO: Final = Path(__file__).parent / "recordings" / "surge.json.gz"
"""The demo, simulated under two policies; `make recording` writes it."""
FRAME_US: Final = 500_000
MAX_FRAMES: Final = 3_600
POLICIES: Final = ("tail-aware", "overprovisioned", "keda-hpa", "algorithm-2")
"""Policies whose cost is shown next to a run's; at most three others."""
LOW_PRIORITY: Final = 19


def head_of(run: RunInfo) -> dict[str, Any]:
    """Return the keys of the state that describe a run."""
    title = f"{run.run} · {run.scenario.get('name', '')}".removesuffix(" · ")
    known = {"start_us": run.started_us} if run.started_us is not None else {}
    return {"title": title, "duration_s": run.duration_s, "percentile": run.percentile, **known}


def frames_of(folder: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the frames of a run: time in µs, and patch to the frame before. Raises ReportError, TailpackError."""
    run = load_run(folder)
    entries = load_journal(folder)
    if not entries:
        raise TailpackError(f"{folder}: journal.parquet is missing or empty; choose a run with an autoscaler")
    state, head = LiveState(run.latency_target_s), head_of(run)
    done_us, latency_s = _finished(folder)
    from_us = min(run.started_us or 0, entries[0].at_us)
    until_us = max(entries[-1].at_us, int(done_us[-1]) if len(done_us) else from_us)
    step_us = max(FRAME_US, (until_us - from_us) // MAX_FRAMES)
    frames: list[tuple[int, dict[str, Any]]] = []
    before: dict[str, Any] = {}
    entry = event = 0
    for now_us in range(from_us, until_us + step_us, step_us):
        while entry < len(entries) and entries[entry].at_us <= now_us:
            state.record_entry(entries[entry])
            entry += 1
        until = int(np.searchsorted(done_us, now_us, side="right"))
        for done, latency in zip(done_us[event:until].tolist(), latency_s[event:until].tolist(), strict=True):
            state.record_latency(done, latency)
        event = until
        found = snapshot(state, now_us, phase="simulated" if run.world == "simulated" else "recorded", **head)
        frames.append((now_us, difference(before, found)))
        before = found
    return frames


def _finished(folder: Path) -> tuple[Any, Any]:
    """Return times in µs and latencies in s of the finished events, by time; empty without events."""
    if not is_complete(folder / EVENTS):
        return np.zeros(0, np.int64), np.zeros(0)
    events = load_events(folder / EVENTS).table()
    done_us, intended_us = events["done_us"], events["intended_us"]
    order = np.argsort(done_us, kind="stable")
    order = order[done_us[order] != NONE]
    return done_us[order], (done_us - intended_us)[order] / 1e6


class OtherPolicies:
    """Simulates the events of a run under other policies, in a process of low priority that starts with `read`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._found: dict[str, Any] | None = None

    def read(self) -> dict[str, Any] | None:
        """Return policy → steps (time in s, replicas) and share in time; None: not known yet."""
        with self._lock:
            if self._process is None:
                command = [*python_module("tailpack.view"), str(self._folder)]
                self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            if self._found is None and self._process.poll() is not None and self._process.stdout:
                self._found = msgspec.json.decode(self._process.stdout.read() or b"{}")
            return self._found

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


def simulate_others(folder: Path) -> dict[str, Any]:
    """Return what `OtherPolicies.read` returns. Policies under which the run cannot be simulated are left out."""
    from bench.replay import run_under  # noqa: PLC0415  compiled code only where something is simulated

    info, found = RunInfo.load(folder), dict[str, Any]()
    for policy in [one for one in POLICIES if one != info.policy][:3]:
        with suppress(BenchError, InvalidSettingsError, OSError, ValueError, *DECODE_ERRORS):
            run, result = run_under(policy, folder, info)
            steps = [[at_us / 1e6, count] for at_us, count in run.requested]
            found[policy] = {"steps": steps, "in_time": round(result.in_sla, 5)}
    return found


class Recording(msgspec.Struct):
    """One run as the page loads it."""

    name: str
    frames: list[tuple[int, dict[str, Any]]]
    others: dict[str, Any] = {}


def load_recordings(place: Path) -> list[Recording]:
    """Return the runs of a file that `tailpack view --save` wrote. Raises TailpackError."""
    try:
        return msgspec.json.decode(gzip.decompress(place.read_bytes()), type=list[Recording])
    except (OSError, EOFError, *DECODE_ERRORS) as error:
        raise TailpackError(f"{place}: cannot be read as a recording of `tailpack view --save` ({error})") from error


class Viewer:
    """The pages of finished runs."""

    def __init__(self, recordings: Sequence[Recording], others: Sequence[OtherPolicies] = ()) -> None:
        self._others = others
        self._files = [Answer(msgspec.json.encode(one)) for one in recordings]
        self._config = {
            "live": False,
            "runs": [
                {"name": one.name, "file": f"live/run/{place}.json", "pending": place < len(others)}
                for place, one in enumerate(recordings)
            ],
        }

    def respond(self, path: str, _query: str) -> Answer:
        """Return the page, a run, or what is known of other policies by now."""
        if path == "/":
            return html_answer(msgspec.json.encode(self._config).decode())
        for place, file in enumerate(self._files):
            if path == f"/live/run/{place}.json":
                return file
            if path == f"/live/others/{place}.json" and place < len(self._others):
                return Answer(msgspec.json.encode(self._others[place].read()))
        return not_found(path, ["/", *(f"/live/run/{place}.json" for place in range(len(self._files)))])


def respond_live(feed: Feed, path: str, _query: str) -> Answer:
    """Return the answer of the live page of a process that has no other pages."""
    return feed.answer(path) or not_found(path, ["/", "/live/state", "/live/events"])


@contextmanager
def serving(respond: Callable[[str, str], Answer]) -> Iterator[str]:
    """Serve pages on this machine. Yields their address."""
    try:
        server = WebServer(respond, PORT)
    except PortTakenError:
        server = WebServer(respond, 0)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.close()


def open_browser(address: str, console: Console) -> None:
    """Open a page, unless the output is no terminal, no display exists, or this is a CI job."""
    has_display = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if console.is_terminal and has_display and not os.environ.get("CI"):
        threading.Thread(target=partial(webbrowser.open, address), daemon=True).start()


if __name__ == "__main__":
    os.nice(LOW_PRIORITY)
    sys.stdout.buffer.write(msgspec.json.encode(simulate_others(Path(sys.argv[1]))))
