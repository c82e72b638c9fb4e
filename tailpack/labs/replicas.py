"""The replicas of an experiment: processes that are started, told to stop, or killed."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tailpack.errors import TailpackError
from tailpack.local.children import Child

KILL_DEADLINE_S: Final = 5.0
STOP_DEADLINE_S: Final = 15.0


class Replicas:
    """Each start has a name of its own: payment-0, payment-1, …"""

    def __init__(self, module: str, environ: Mapping[str, str], folder: Path) -> None:
        self._module = module
        self._environ = environ
        self._folder = folder
        self._running: dict[str, Child] = {}
        self._stopping: dict[str, Child] = {}
        self._born = 0

    @property
    def running(self) -> tuple[str, ...]:
        """Names of those that were started and not told to stop."""
        return tuple(self._running)

    def start(self) -> str:
        """Start one more; return its name at once."""
        name = f"payment-{self._born}"
        self._born += 1
        environ = {**self._environ, "TAILPACK_REPLICA": name}
        child = Child(name, self._module, environ, self._folder / f"{name}.log")
        self._running[name] = child
        child.start()
        return name

    def terminate(self, name: str) -> int:
        """SIGTERM; return when, µs since the epoch."""
        child = self._stopping[name] = self._running.pop(name)
        at_us = time.time_ns() // 1000
        child.terminate()
        return at_us

    def gone(self, name: str) -> bool:
        """Return whether one that was told to stop has ended."""
        return self._stopping[name].exit_status is not None

    def kill(self, name: str) -> int:
        """SIGKILL; return the time just before it, when the system has confirmed the end."""
        child = self._stopping[name] = self._running.pop(name)
        pid = child.pid
        if pid is None:
            raise TailpackError(f"{name} had ended before it was to be killed: {child.last_words()}")
        at_us = time.time_ns() // 1000
        os.kill(pid, signal.SIGKILL)
        child.wait(KILL_DEADLINE_S)
        return at_us

    def check(self) -> None:
        """Raise TailpackError when one has ended that nobody told to."""
        for name, child in self._running.items():
            if child.exit_status is not None:
                raise TailpackError(f"{name} ended with status {child.exit_status}: {child.last_words()}")

    def close(self) -> None:
        """Leave no process behind: all are asked to stop, then awaited, by force at the deadline."""
        mine = [*self._running.values(), *self._stopping.values()]
        for child in mine:
            child.terminate()
        until = time.monotonic() + STOP_DEADLINE_S
        for child in mine:
            child.wait(max(0.1, until - time.monotonic()))
