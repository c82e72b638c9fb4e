"""Child processes: started in a group of their own, watched, stopped by their own pid, never cut in half."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_DEADLINE_S: Final = 10.0
RESTART_BACKOFF_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold signals that ask to stop until the block is done; then the first of them is delivered.

    Main thread only. Children started inside get the default handlers, as after any exec.
    """
    held: list[int] = []
    before = {number: signal.signal(number, lambda number, _: held.append(number)) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(signal.Signals(held[0]))


@dataclass(slots=True)
class Child:
    """One process and what is needed to start it again. Its output goes to `log`."""

    name: str
    module: str
    environ: Mapping[str, str]
    log: Path
    arguments: Sequence[str] = ()
    restarts: int = 0
    _process: "subprocess.Popen[bytes] | None" = None
    _restart_at: float | None = None

    def start(self) -> None:
        """Start `python -m module`, in a session of its own: Ctrl-C reaches the parent alone, which stops in order."""
        with uninterrupted(), self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.module, *self.arguments],
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def exit_status(self) -> int | None:
        """Exit status once it has ended; negative for a signal."""
        return self._process.poll() if self._process else None

    def last_words(self) -> str:
        """Return the last line of its log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")

    def ending(self) -> str:
        """Return how it ended, and the last line of its log."""
        return f"{_status(self.exit_status)}: {self.last_words()}"

    def supervise(self, now: float) -> str | None:
        """Start it again, with growing pauses, when it has ended. Return a sentence when something happened.

        now: monotonic seconds.
        """
        status = self.exit_status
        if status is None:
            return None
        if self._restart_at is None:
            pause = RESTART_BACKOFF_S[min(self.restarts, len(RESTART_BACKOFF_S) - 1)]
            self._restart_at = now + pause
            return f"{self.name} ended ({self.ending()}); starting it again in {pause:g} s"
        if now < self._restart_at:
            return None
        self._restart_at = None
        self.restarts += 1
        self.start()
        return f"{self.name} started again ({self.restarts})"

    def terminate(self) -> None:
        """Ask it to stop."""
        if self._process and self._process.poll() is None:
            self._process.terminate()

    def wait(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """Wait until it is gone; by force after `deadline_s`."""
        if self._process is None:
            return
        try:
            self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclass(slots=True)
class Children:
    """The children of a run, stopped in the reverse of the order in which they were started."""

    started: list[Child] = field(default_factory=list)

    def start(self, child: Child) -> Child:
        """Start one more."""
        self.started.append(child)
        child.start()
        return child

    def stop(self, *, keep: Sequence[Child] = (), deadline_s: float = STOP_DEADLINE_S) -> None:
        """Ask all to stop, at once, then wait for each."""
        going = [child for child in reversed(self.started) if child not in keep]
        for child in going:
            child.terminate()
        until = time.monotonic() + deadline_s
        for child in going:
            child.wait(max(0.1, until - time.monotonic()))
        self.started = [child for child in self.started if child in keep]


def family(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """Return the process and all that it has started, itself first; nothing once it is gone."""
    try:
        found = psutil.Process(process.pid)
        return [found, *found.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def end_family(process: "subprocess.Popen[bytes]", deadline_s: float = STOP_DEADLINE_S) -> None:
    """Ask a process to end that has others of its own, as Python has a JVM; end by force what is still there then."""
    others = family(process)[1:]
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(deadline_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for left in psutil.wait_procs(others, timeout=1)[1]:
        left.kill()


def _status(status: int | None) -> str:
    if status is None:
        return "it runs"
    return f"signal {-status}" if status < 0 else f"exit status {status}"
