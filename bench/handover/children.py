"""Members of an experiment that are started, told to stop, or killed: the load, and replicas of any launcher."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from autoscaler.live.launcher import Instance, Launcher
from autoscaler.live.launchers.processes import ProcessLauncher
from bench import BenchError
from contracts.children import python_module
from contracts.clock import now_us

STOP_DEADLINE_S: Final = 15.0
CONFIRMED_S: Final = 20.0
"""A system that has not told of an end by then will not."""
LOOK_S: Final = 0.002

Crash = Callable[[Instance], int]
"""Sends SIGKILL to an instance; returns when, µs since the epoch."""


def sigkill(process: Instance) -> int:
    """Kill a process of this machine."""
    at_us = now_us()
    process.kill()
    return at_us


class Children:
    """Instances of one launcher: payment-0, payment-1, … or as they are named."""

    def __init__(self, launcher: Launcher, crash: Crash = sigkill) -> None:
        self._launcher = launcher
        self._crash = crash
        self._running: dict[str, Instance] = {}
        self._stopping: dict[str, Instance] = {}

    @property
    def running(self) -> tuple[str, ...]:
        """Names of those that were started and not told to stop."""
        return tuple(self._running)

    @property
    def trouble(self) -> str:
        """What keeps one from starting, or the launcher from its work; empty where nothing does."""
        return self._launcher.trouble or next(filter(None, (one.pending for one in self._running.values())), "")

    def start(self, name: str = "") -> str:
        """Start one more; return its name at once."""
        name = name or f"payment-{len(self._running) + len(self._stopping)}"
        self._running[name] = self._launcher.start(name)
        return name

    def terminate(self, name: str) -> int:
        """Ask it to stop; return when, µs since the epoch."""
        instance = self._stopping[name] = self._running.pop(name)
        at_us = now_us()
        instance.ask_to_stop()
        return at_us

    def kill(self, name: str, *, known: bool) -> int:
        """SIGKILL; return when, µs since the epoch, once the system has told of its end.

        known: by itself; else it is removed at once, so that nothing is started again in its place.
        """
        instance = self._stopping[name] = self._running.pop(name)
        at_us = self._crash(instance)
        if not known:
            instance.kill()
        if not _ended([instance], CONFIRMED_S):
            raise BenchError(f"nobody tells of the end of {name} within {CONFIRMED_S:.0f} s; {self.trouble}")
        instance.kill()
        self._launcher.forget(name)
        return at_us

    def gone(self, name: str) -> bool:
        """Return whether one that was told to stop has ended."""
        return self._stopping[name].exit() is not None

    def check(self) -> None:
        """Raise BenchError when one has ended that nobody told to."""
        for name, instance in self._running.items():
            if ended := instance.exit():
                raise BenchError(f"{name} ended in mid-run ({ended.how}): {self.last_words(name)}")

    def last_words(self, name: str) -> str:
        """Return the last that it said."""
        return self._launcher.last_log_line(name)

    def close(self) -> None:
        """Leave nothing behind: all are asked to stop, then awaited, by force at the deadline."""
        for name in self.running:
            self.terminate(name)
        if not _ended(self._stopping.values(), STOP_DEADLINE_S):
            for instance in self._stopping.values():
                instance.kill()
            _ended(self._stopping.values(), STOP_DEADLINE_S)
        self._launcher.close()


def processes(folder: Path, module: str, environ: Mapping[str, str]) -> Children:
    """Return children that are processes of one Python module, which leave their logs in `folder`."""
    return Children(ProcessLauncher(folder, python_module(module), environ))


def _ended(instances: Iterable[Instance], within_s: float) -> bool:
    """Wait until all have ended; return whether they have."""
    until_s = time.monotonic() + within_s
    while any(one.exit() is None for one in instances):
        if time.monotonic() > until_s:
            return False
        time.sleep(LOOK_S)  # nothing tells of an end
    return True
