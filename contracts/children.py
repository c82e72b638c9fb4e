"""Child processes. Each has its own session and its own log, and is stopped by its pid."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_DEADLINE_S: Final = 10.0
LOG_TAIL_BYTES: Final = 4096
MAX_LOG_BYTES: Final = 10_000_000


def python_module(module: str) -> list[str]:
    """Return the command that runs a module in the current Python."""
    return [sys.executable, "-m", module]


def start(command: Sequence[str], environ: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """Start a command whose output is appended to `log`. Ctrl-C in the terminal does not reach it. Raises OSError."""
    limit_log(log)
    with log.open("ab") as out:
        streams: Any = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
        return subprocess.Popen(command, env=dict(environ), start_new_session=True, **streams)


def limit_log(log: Path) -> None:
    """If the log exceeds MAX_LOG_BYTES, move its content to LOG.1. A running process keeps appending to `log`."""
    with suppress(OSError):
        if log.stat().st_size > MAX_LOG_BYTES:
            shutil.copyfile(log, f"{log}.1")
            os.truncate(log, 0)


def describe_exit(status: int) -> str:
    """Return an exit status as text."""
    return f"exit status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"


def last_log_line(log: Path) -> str:
    """Return the last line of a log, or an empty text if it has none."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
        return next(filter(None, map(str.strip, reversed(file.read().decode(errors="replace").split("\n")))), "")
    return ""


@contextmanager
def collect_stop_signals(*, then_raise: bool = False) -> Iterator[list[int]]:
    """Collect stop signals in the yielded list (main thread only). then_raise: raise the first one after the block."""
    received: list[int] = []
    before = {number: signal.signal(number, lambda number, _: received.append(number)) for number in STOP_SIGNALS}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if then_raise and received:
            signal.raise_signal(signal.Signals(received[0]))


defer_stop_signals = partial(collect_stop_signals, then_raise=True)
"""Defer stop signals until the end of the block, which raises the first of them. Main thread only."""


@dataclass(slots=True)
class Child:
    """A process and how to start it again. Its output is appended to `log`."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM  # stops the process and its own children
    _process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start the command. Ctrl-C is deferred until the process id is known, so that the process can be stopped."""
        with defer_stop_signals():
            self._process = start(self.command, self.environ, self.log)

    @property
    def pid(self) -> int | None:
        """Process id while it runs, else None."""
        return self._process.pid if self._process and self.exit_status is None else None

    @property
    def exit_status(self) -> int | None:
        """Exit status after the end, negative for a signal; None while it runs."""
        return self._process.poll() if self._process else None

    def ending(self) -> str:
        """Return how the process ended, and the last line of its log."""
        status = self.exit_status
        how = "running" if status is None else describe_exit(status)
        return f"{how}: {last_log_line(self.log) or 'its log is empty'}"

    def terminate(self) -> None:
        """Send its stop signal."""
        if self._process:
            self._process.send_signal(self.stop_signal)

    def wait(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """Wait until it has ended. Kill it after `deadline_s` seconds."""
        if self._process:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, deadline_s))
            self._process.kill()
            self._process.wait()
