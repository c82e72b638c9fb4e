"""The port through which replicas are started, watched, stopped, and adopted after a restart of the autoscaler.

Adapters are in `launchers`. One contract suite tests them all: tests/support/launcher_contract.py.
Nothing here waits: the autoscaler looks at its replicas every 20 ms. What is slow (an API server) is asked
in the background with a deadline; until it answers an instance is pending, and what it answers is seen by `exit`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Protocol

from contracts.progress import Progress
from contracts.waiting import WaitTimeoutError, until

LOOK_S: Final = 0.02


class LauncherError(Exception):
    """Replicas cannot be looked after at all; says what, where, and what to do."""


@contextmanager
def of_extra(extra: str) -> Iterator[None]:
    """Within it what comes with an extra is imported. Raises LauncherError where that is not installed."""
    try:
        yield
    except ImportError as missing:
        raise LauncherError(f"{missing.name} is not installed: in a clone, pip install '.[{extra}]'") from missing


@dataclass(frozen=True, slots=True)
class Exit:
    """How an instance ended, or why it never ran."""

    how: str
    clean: bool
    """By itself, with status 0; or unknown."""
    known: bool = True
    """The exit status was seen."""


class Instance(Protocol):
    """One start of one replica: a process, a pod. Ended for good once `exit` says so."""

    @property
    def where(self) -> str:
        """What an operator would look for: `pid 4711`."""

    @property
    def pending(self) -> str:
        """Why it does not run yet although nothing is wrong, such as an image that is being pulled; empty: it runs."""

    def exit(self) -> Exit | None:
        """Return how it ended; None while it runs, or may."""

    def wrote(self, report: Progress) -> bool:
        """Tell whether a report is of this instance, and of no earlier or later one of that name."""

    def ask_to_stop(self) -> None:
        """Send SIGTERM: it drains and leaves. One that has ended ignores it; one that does not run yet never will."""

    def kill(self) -> None:
        """End it at once, and keep trying while the API server is silent."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """What an earlier autoscaler has left under a name; it may have ended since."""

    name: str
    instance: Instance
    incarnation: str = ""
    """How it reports itself, where that was written down."""


class Launcher(Protocol):
    """Starts replicas, one instance for a name at a time."""

    @property
    def trouble(self) -> str:
        """The problem that keeps it from its work now, one sentence; empty: none."""

    @property
    def wanted(self) -> int:
        """How many replicas others are to bring, as plans state it; 0: it starts and stops them itself."""

    def start(self, name: str) -> Instance:
        """Begin to start `name`. Raises OSError when it is known at once that it cannot; then nothing runs."""

    def remember(self, name: str, incarnation: str) -> None:
        """Keep for a later autoscaler how the instance under `name` reports itself. Raises OSError."""

    def forget(self, name: str) -> None:
        """Remove what is left of an instance that has ended."""

    def find_orphans(self) -> Iterable[Orphan]:
        """Return what an earlier autoscaler left, once, at the start; this may wait. Raises LauncherError."""

    def last_log_line(self, name: str) -> str:
        """Return the last line that the instance under `name` wrote; empty where there is none."""

    def close(self) -> None:
        """Finish what is being done in the background. Replicas run on."""


def stop_orphans(launcher: Launcher, patience_s: float) -> tuple[list[str], list[str]]:
    """Stop every replica that an earlier autoscaler left; return the names of those that stopped, and of those killed.

    Each commits, leaves the group and ends within `patience_s`, or is killed. The record of a killed one stays: by it
    the next autoscaler reports to the group that this member is dead. Raises LauncherError.
    """
    running = {one.name: one.instance for one in launcher.find_orphans() if one.instance.exit() is None}

    def wait() -> None:
        with suppress(WaitTimeoutError):
            until(lambda: all(one.exit() for one in running.values()), patience_s, "their end", LOOK_S)

    for instance in running.values():
        instance.ask_to_stop()
    wait()
    killed = [name for name, instance in running.items() if instance.exit() is None]
    for name in killed:
        running[name].kill()
    wait()
    stopped = [name for name in running if name not in killed]
    for name in stopped:
        launcher.forget(name)
    launcher.close()
    return stopped, killed
