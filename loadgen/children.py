"""Child processes of a run: the load generator and the processes of the pipeline. Each is stopped by its pid."""

import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from contracts.children import STOP_DEADLINE_S, STOP_SIGNALS, describe_exit, last_log_line, python_module, start

__all__ = ["STOP_DEADLINE_S", "STOP_SIGNALS", "Child", "collect_stop_signals", "defer_stop_signals", "python_module"]


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
