"""Processes of an experiment that are started, told to stop, or killed: the replicas, and the load."""

import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.handover.setup import ExperimentError
from contracts.clock import now_us
from contracts.processes import how_it_ended, last_log_line, python_module, start, wait_for_end

STOP_DEADLINE_S: Final = 15.0


class Children:
    """Processes of one Python module: payment-0, payment-1, … or as they are named."""

    def __init__(self, folder: Path, module: str, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._module = module
        self._environ = environ
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def running(self) -> tuple[str, ...]:
        """Names of those that were started and not told to stop."""
        return tuple(self._running)

    def start(self, name: str = "") -> str:
        """Start one more; return its name at once."""
        name = name or f"payment-{len(self._running) + len(self._stopping)}"
        environ = {**self._environ, "TAILPACK_REPLICA": name}
        self._running[name] = start(python_module(self._module), environ, self._log(name))
        return name

    def terminate(self, name: str) -> int:
        """SIGTERM; return when, µs since the epoch."""
        return self._end(name, signal.SIGTERM)

    def kill(self, name: str) -> int:
        """SIGKILL; return the time just before it, when the system has confirmed the end."""
        at_us = self._end(name, signal.SIGKILL)
        self._stopping[name].wait()
        return at_us

    def gone(self, name: str) -> bool:
        """Return whether one that was told to stop has ended."""
        return self._stopping[name].poll() is not None

    def check(self) -> None:
        """Raise ExperimentError when one has ended that nobody told to."""
        for name, process in self._running.items():
            if (status := process.poll()) is not None:
                raise ExperimentError(f"{name} ended in mid-run ({how_it_ended(status)}): {self.last_words(name)}")

    def last_words(self, name: str) -> str:
        """Return the last that it said."""
        return last_log_line(self._log(name))

    def close(self) -> None:
        """Leave no process behind: all are asked to stop, then awaited, by force at the deadline."""
        for name in self.running:
            self._end(name, signal.SIGTERM)
        until_s = time.monotonic() + STOP_DEADLINE_S
        for process in self._stopping.values():
            wait_for_end(process, until_s - time.monotonic())

    def _end(self, name: str, number: signal.Signals) -> int:
        process = self._stopping[name] = self._running.pop(name)
        at_us = now_us()
        process.send_signal(number)
        return at_us

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"
