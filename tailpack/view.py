"""Show runs on the live page: a run that is going on, or finished and simulated runs, whose frames are replayed."""

import gzip
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import parse_qsl

import msgspec
import numpy as np
import typer
from rich.console import Console

from autoscaler.page.feed import html_answer
from autoscaler.page.snapshot import difference, snapshot
from autoscaler.page.state import LiveState
from bench import BenchError, reason
from contracts.pages import Act, Answer, PortTakenError, WebServer, http_error, not_found
from contracts.validation import DECODE_ERRORS
from report.run_info import EVENTS, RunInfo, load_run
from report.stored import is_complete, load_events, load_journal
from report.table import NONE
from tailpack.cli.options import NoBrowser
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from bench.replay import Replay

PORT: Final = 8099
"""Port of the page; if it is taken, a free one."""
DEMO: Final = Path(__file__).parent / "recordings" / "surge.json.gz"
"""The demo, simulated under two policies; `make recording` writes it."""
FRAME_US: Final = 500_000
MAX_FRAMES: Final = 3_600
SIMULATED: Final = "/live/simulated/"
LOCK_S: Final = 8.0
"""Longest time that a request waits for another simulation; the web server closes a connection after 10 s."""
MAX_SIMULATED: Final = 200
"""Maximum number of simulations of one run whose figures are kept."""


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
    recordings, simulations = list[Recording](), dict[int, Simulations]()
    for place in places:
        if place.suffix == ".gz":
            recordings += load_recordings(place)
            continue
        with console.status(f"reading {place}"):
            recordings.append(Recording(place.resolve().name, frames_of(place)))
            simulations[len(recordings) - 1] = Simulations(place, recordings[-1])
    if save is not None:
        with console.status("simulating the same load under other policies"):
            for number, one in simulations.items():
                recordings[number].others = one.others()
        save.write_bytes(gzip.compress(msgspec.json.encode(recordings), mtime=0))
        console.print(f"saved: {save}", highlight=False, soft_wrap=True)
        return
    with serving(Viewer(recordings, simulations).respond) as address:
        Console().print(f"{address} (Ctrl-C ends it)", highlight=False, soft_wrap=True)
        if not no_browser:
            open_browser(address, console)
        threading.Event().wait()


def head_of(run: RunInfo) -> dict[str, Any]:
    """Return the keys of the state that describe a run."""
    title = f"{run.run} · {run.scenario.get('name', '')}".removesuffix(" · ")
    known = {"start_us": run.started_us} if run.started_us is not None else {}
    return {"title": title, "duration_s": run.duration_s, "percentile": run.percentile, **known}


def counted_us(run: RunInfo) -> tuple[int, int]:
    """Return begin and end of the time whose cost a run counts, µs since 1970."""
    return run.started_us or 0, (run.started_us or 0) + round(run.duration_s * 1e6)


def frames_of(folder: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the frames of a run: time in µs, and patch to the frame before. Raises ReportError, TailpackError."""
    run, entries = load_run(folder), load_journal(folder)
    if not entries:
        raise TailpackError(f"{folder}: journal.parquet is missing or empty; choose a run with an autoscaler")
    state, head = LiveState(run.latency_target_s, counted_us=counted_us(run)), head_of(run)
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
    others: list[dict[str, Any]] = []
    """Figures so far of other policies on the same load (bench.replay.SoFar)."""


def load_recordings(place: Path) -> list[Recording]:
    """Return the runs of a file that `tailpack view --save` wrote. Raises TailpackError."""
    try:
        return msgspec.json.decode(gzip.decompress(place.read_bytes()), type=list[Recording])
    except (OSError, EOFError, *DECODE_ERRORS) as error:
        raise TailpackError(f"{place}: cannot be read as a recording of `tailpack view --save` ({error})") from error


class Simulations:
    """Simulates the load of one run with other settings, one simulation at a time."""

    def __init__(self, folder: Path, recording: Recording) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._replay: Replay | None = None
        self._found: dict[str, Any] = {}
        info = RunInfo.load(folder)
        startup_s = next((patch["startup_s"] for _, patch in reversed(recording.frames) if "startup_s" in patch), 0.0)
        self.whatif = {
            "replicas": info.payment_partitions,
            "latency_ms": round(1e3 * info.latency_target_s),
            "startup_ms": round(1e3 * startup_s),
        }
        """Settings that the page can change: the most replicas, and the values of the run in ms."""

    def answer(self, query: str) -> Answer:
        """Return the figures for a query: `policy=N` is the n-th other policy; `replicas`, `latency_ms`, `startup_ms`.

        A simulation that is not possible is answered with {"error": …}.
        """
        try:
            asked = {name: int(value) for name, value in parse_qsl(query, strict_parsing=bool(query))}
            if set(asked) - {"policy", *self.whatif} or not all(0 <= value <= 10**6 for value in asked.values()):
                raise ValueError
        except ValueError:
            return http_error("400 Bad Request", "numbers of policy, replicas, latency_ms or startup_ms are supported")
        if not self._lock.acquire(timeout=LOCK_S):
            return http_error("503 Service Unavailable", "another simulation is running; try again")
        try:
            key = str(sorted(asked.items()))
            if key not in self._found:
                self._found[key] = self._simulate(asked)
            while len(self._found) > MAX_SIMULATED:
                del self._found[next(iter(self._found))]
            return Answer(msgspec.json.encode(self._found[key]))
        finally:
            self._lock.release()

    def others(self) -> list[dict[str, Any]]:
        """Return the figures of three other policies; fewer if the run cannot be simulated."""
        found = [self._simulate({"policy": number}) for number in range(3)]
        return [one for one in found if "error" not in one]

    def _simulate(self, asked: dict[str, int]) -> dict[str, Any]:
        try:
            from bench.replay import Replay  # noqa: PLC0415  compiled code only where something is simulated

            self._replay = self._replay or Replay(self._folder)
            info, others = self._replay.info, self._replay.other_policies
            changes: dict[str, Any] = {}
            if "policy" in asked:
                if asked["policy"] >= len(others):
                    raise BenchError(f"there are {len(others)} other policies")
                changes["autoscaler.policy"] = others[asked["policy"]]
            elif count := asked.get("replicas", 0):
                count = min(count, info.payment_partitions)
                changes |= {"autoscaler.policy": f"static-{count}", "autoscaler.initial_replicas": count}
                changes |= {"autoscaler.min_replicas": 1, "autoscaler.max_replicas": info.payment_partitions}
            elif ".py" in info.policy:
                raise BenchError(f"{info.policy} is code; choose a number of replicas, or use tailpack simulate")
            if "latency_ms" in asked:
                changes["target.latency_target_s"] = asked["latency_ms"] / 1e3
            if "startup_ms" in asked:
                changes["simulation.startup_s"] = asked["startup_ms"] / 1e3
            return msgspec.to_builtins(self._replay.so_far(changes))  # type: ignore[no-any-return]
        except Exception as error:  # an answer that is missing is requested again
            return {"error": reason(error)}


class Viewer:
    """The pages of finished runs. simulations: by the number of a run whose load can be simulated."""

    def __init__(self, recordings: Sequence[Recording], simulations: Mapping[int, Simulations] | None = None) -> None:
        self._files = {f"/live/run/{place}.json": one for place, one in enumerate(recordings)}
        self._simulations = {f"{SIMULATED}{place}": one for place, one in (simulations or {}).items()}
        runs: list[dict[str, Any]] = [{"name": one.name, "file": file[1:]} for file, one in self._files.items()]
        for place, one in (simulations or {}).items():
            runs[place] |= {"simulated": f"{SIMULATED}{place}"[1:], "whatif": one.whatif}
        self._config = msgspec.json.encode({"live": False, "runs": runs}).decode()

    def respond(self, path: str, query: str) -> Answer:
        """Return the page, a run, or a simulation."""
        if path == "/":
            return html_answer(self._config)
        if path in self._simulations:
            return self._simulations[path].answer(query)
        file = self._files.get(path)
        return Answer(msgspec.json.encode(file)) if file else not_found(path, ["/", *self._files])


@contextmanager
def serving(respond: Callable[[str, str], Answer], act: Act | None = None) -> Iterator[str]:
    """Serve pages on this machine. act: answers POST requests. Yields their address."""
    try:
        server = WebServer(respond, PORT, act=act)
    except PortTakenError:
        server = WebServer(respond, 0, act=act)
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
