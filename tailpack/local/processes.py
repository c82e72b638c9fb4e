"""The child processes of a run: watched, started again when they end, stopped by their own pid."""

import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from contracts.processes import how_it_ended, last_log_line, python_module, start, uninterrupted, wait_for_end

STOP_DEADLINE_S: Final = 10.0
RESTART_BACKOFF_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(slots=True)
class Child:
    """One process and what is needed to start it again. Its output goes to `log`."""

    name: str
    module: str
    environ: Mapping[str, str]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM
    """What asks it to end, and all that it has started."""
    restarts: int = 0
    _process: "subprocess.Popen[bytes] | None" = None
    _restart_at: float | None = None

    def start(self) -> None:
        """Start `python -m module`; it is known to us before a Ctrl-C is heard."""
        with uninterrupted():
            self._process = start(python_module(self.module), self.environ, self.log)

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
        return last_log_line(self.log) or "it said nothing"

    def ending(self) -> str:
        """Return how it ended, and the last line of its log."""
        status = self.exit_status
        return f"{'it runs' if status is None else how_it_ended(status)}: {self.last_words()}"

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
            self._process.send_signal(self.stop_signal)

    def wait(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """Wait until it is gone; by force after `deadline_s`."""
        if self._process:
            wait_for_end(self._process, deadline_s)


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
    wait_for_end(process, deadline_s)
    for left in psutil.wait_procs(others, timeout=1)[1]:
        left.kill()
