"""The replicas of an experiment: processes that are started, told to stop, or killed."""

import os
import signal
import time
from collections.abc import Callable
from typing import Final

from bench.handover.setup import ExperimentError, Process
from contracts.clock import now_us

KILL_DEADLINE_S: Final = 5.0
STOP_DEADLINE_S: Final = 15.0


class Replicas:
    """Each start has a name of its own: payment-0, payment-1, …"""

    def __init__(self, make: Callable[[str], Process]) -> None:
        """make: makes the process of a replica from its name."""
        self._make = make
        self._running: dict[str, Process] = {}
        self._stopping: dict[str, Process] = {}
        self._born = 0

    @property
    def running(self) -> tuple[str, ...]:
        """Names of those that were started and not told to stop."""
        return tuple(self._running)

    def start(self) -> str:
        """Start one more; return its name at once."""
        name = f"payment-{self._born}"
        self._born += 1
        self._running[name] = self._make(name)
        self._running[name].start()
        return name

    def terminate(self, name: str) -> int:
        """SIGTERM; return when, µs since the epoch."""
        process = self._stopping[name] = self._running.pop(name)
        at_us = now_us()
        process.terminate()
        return at_us

    def gone(self, name: str) -> bool:
        """Return whether one that was told to stop has ended."""
        return self._stopping[name].exit_status is not None

    def kill(self, name: str) -> int:
        """SIGKILL; return the time just before it, when the system has confirmed the end."""
        process = self._stopping[name] = self._running.pop(name)
        pid = process.pid
        if pid is None:
            raise ExperimentError(f"{name} had ended before it was to be killed: {process.last_words()}")
        at_us = now_us()
        os.kill(pid, signal.SIGKILL)
        process.wait(KILL_DEADLINE_S)
        return at_us

    def check(self) -> None:
        """Raise ExperimentError when one has ended that nobody told to."""
        for name, process in self._running.items():
            if process.exit_status is not None:
                raise ExperimentError(f"{name} ended with status {process.exit_status}: {process.last_words()}")

    def close(self) -> None:
        """Leave no process behind: all are asked to stop, then awaited, by force at the deadline."""
        mine = [*self._running.values(), *self._stopping.values()]
        for process in mine:
            process.terminate()
        until = time.monotonic() + STOP_DEADLINE_S
        for process in mine:
            process.wait(max(0.1, until - time.monotonic()))
