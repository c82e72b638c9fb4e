"""Show runs on the live page: a run that is going on, or finished and simulated runs, whose frames are replayed."""

import gzip
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import typer
from rich.console import Console

from autoscaler.page.feed import html_answer
from autoscaler.page.snapshot import difference, snapshot
from autoscaler.page.state import LiveState
from contracts.pages import Answer, PortTakenError, WebServer, not_found
from contracts.validation import DECODE_ERRORS
from report.run_info import EVENTS, RunInfo, load_run
from report.stored import is_complete, load_events, load_journal
from report.table import NONE
from tailpack.cli.options import NoBrowser
from tailpack.errors import TailpackError

PORT: Final = 8099
"""Port of the page; if it is taken, a free one."""
DEMO: Final = Path(__file__).parent / "recordings" / "surge.json.gz"
"""The demo, simulated under two policies; `make recording` writes it."""
FRAME_US: Final = 500_000
MAX_FRAMES: Final = 3_600


def view(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN_DIR…]", help="Folder of a finished or simulated run, or a saved recording."),
    ] = None,
    *,
    demo: Annotated[bool, typer.Option("--demo", help="Replay a recorded surge under two policies.")] = False,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE.json.gz", help="Save the runs as one file to share.")
    ] = None,
    no_browser: NoBrowser = False,
) -> None:
    """Replay runs on the live page, with a time line; two runs are shown side by side. Ctrl-C ends it.

    It needs neither Kafka nor Java.
    """
    places = [*(runs or ()), *([DEMO] if demo else ())]
    if not places:
        raise TailpackError("name the folder of a run, such as out/NAME, or use --demo")
    console = Console(stderr=True)
    recordings = list[Recording]()
    for place in places:
        if place.suffix == ".gz":
            recordings += load_recordings(place)
            continue
        with console.status(f"reading {place}"):
            recordings.append(Recording(place.resolve().name, frames_of(place)))
    if save is not None:
        save.write_bytes(gzip.compress(msgspec.json.encode(recordings), mtime=0))
        console.print(f"saved: {save}", highlight=False, soft_wrap=True)
        return
    with serving(Viewer(recordings).respond) as address:
        Console().print(f"{address} (Ctrl-C ends it)", highlight=False, soft_wrap=True)
        if not no_browser:
            open_browser(address, console)
        threading.Event().wait()


def head_of(run: RunInfo) -> dict[str, Any]:
    """Return the keys of the state that describe a run."""
    title = f"{run.run} · {run.scenario.get('name', '')}".removesuffix(" · ")
    known = {"start_us": run.started_us} if run.started_us is not None else {}
    return {"title": title, "duration_s": run.duration_s, "percentile": run.percentile, **known}


def frames_of(folder: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the frames of a run: time in µs, and patch to the frame before. Raises ReportError, TailpackError."""
    run, entries = load_run(folder), load_journal(folder)
    if not entries:
        raise TailpackError(f"{folder}: journal.parquet is missing or empty; choose a run with an autoscaler")
    state, head = LiveState(run.latency_target_s), head_of(run)
    done_us, latency_s = _finished(folder)
    from_us = min(run.started_us or 0, entries[0].at_us)
    until_us = max(entries[-1].at_us, int(done_us[-1]) if len(done_us) else from_us)
    step_us = max(FRAME_US, (until_us - from_us) // MAX_FRAMES)
    frames, before = list[tuple[int, dict[str, Any]]](), dict[str, Any]()
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
    done = events.where(events["done_us"] != NONE)
    done = done.where(np.argsort(done["done_us"], kind="stable"))
    return done["done_us"], (done["done_us"] - done["intended_us"]) / 1e6


class Recording(msgspec.Struct):
    """One run as the page loads it."""

    name: str
    frames: list[tuple[int, dict[str, Any]]]


def load_recordings(place: Path) -> list[Recording]:
    """Return the runs of a file that `tailpack view --save` wrote. Raises TailpackError."""
    try:
        return msgspec.json.decode(gzip.decompress(place.read_bytes()), type=list[Recording])
    except (OSError, EOFError, *DECODE_ERRORS) as error:
        raise TailpackError(f"{place}: cannot be read as a recording of `tailpack view --save` ({error})") from error


class Viewer:
    """The pages of finished runs."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._files = {f"/live/run/{place}.json": one for place, one in enumerate(recordings)}
        runs = [{"name": one.name, "file": file[1:]} for file, one in self._files.items()]
        self._config = msgspec.json.encode({"live": False, "runs": runs}).decode()

    def respond(self, path: str, _query: str) -> Answer:
        """Return the page or a run."""
        if path == "/":
            return html_answer(self._config)
        file = self._files.get(path)
        return Answer(msgspec.json.encode(file)) if file else not_found(path, ["/", *self._files])


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
