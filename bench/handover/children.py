"""Processes of an experiment that are started, told to stop, or killed: the replicas, and the load."""

import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from autoscaler.live.launcher import ProcessLauncher, ReplicaProcess
from bench.handover.setup import ExperimentError
from contracts.clock import now_us

STOP_DEADLINE_S: Final = 15.0
POLL_S: Final = 0.01


class Children:
    """Processes of one Python module, as the autoscaler starts them: payment-0, payment-1, … or as they are named."""

    def __init__(self, folder: Path, module: str, environ: Mapping[str, str]) -> None:
        self._launcher = ProcessLauncher(folder, module, environ)
        self._running: dict[str, ReplicaProcess] = {}
        self._stopping: dict[str, ReplicaProcess] = {}

    @property
    def running(self) -> tuple[str, ...]:
        """Names of those that were started and not told to stop."""
        return tuple(self._running)

    def start(self, name: str = "") -> str:
        """Start one more; return its name at once."""
        name = name or f"payment-{len(self._running) + len(self._stopping)}"
        self._running[name] = self._launcher.start(name)
        return name

    def terminate(self, name: str) -> int:
        """SIGTERM; return when, µs since the epoch."""
        return self._end(name, signal.SIGTERM)

    def kill(self, name: str) -> int:
        """SIGKILL; return the time just before it, when the system has confirmed the end."""
        at_us = self._end(name, signal.SIGKILL)
        _wait_for_end(self._stopping[name], STOP_DEADLINE_S)
        return at_us

    def gone(self, name: str) -> bool:
        """Return whether one that was told to stop has ended."""
        return self._stopping[name].exit() is not None

    def check(self) -> None:
        """Raise ExperimentError when one has ended that nobody told to."""
        for name, process in self._running.items():
            if end := process.exit():
                raise ExperimentError(f"{name} ended in mid-run ({end.how}): {self.last_log_line(name)}")

    def last_log_line(self, name: str) -> str:
        """Return the last that it said."""
        return self._launcher.last_log_line(name)

    def close(self) -> None:
        """Leave no process behind: all are asked to stop, then awaited, by force at the deadline."""
        for name in self.running:
            self._end(name, signal.SIGTERM)
        until_s = time.monotonic() + STOP_DEADLINE_S
        for process in self._stopping.values():
            _wait_for_end(process, until_s - time.monotonic())

    def _end(self, name: str, number: signal.Signals) -> int:
        process = self._stopping[name] = self._running.pop(name)
        at_us = now_us()
        process.signal(number)
        return at_us


def _wait_for_end(process: ReplicaProcess, deadline_s: float) -> None:
    until_s = time.monotonic() + deadline_s
    while process.exit() is None:
        if time.monotonic() > until_s:
            process.signal(signal.SIGKILL)
        time.sleep(POLL_S)  # only its exit status tells
