"""The port that starts, observes, stops and adopts replicas.

Adapters are in `launchers`. One contract suite tests them all: tests/support/launcher_contract.py.
No call waits, because the autoscaler checks its replicas every 20 ms. A slow API server is queried in the background
with a deadline. An instance is pending until the API server answers.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Protocol

from contracts.progress import Progress
from contracts.waiting import WaitTimeoutError, until

POLL_S: Final = 0.02


class LauncherError(Exception):
    """The launcher cannot work, or a server refused a request. The message names the cause and the remedy.

    status: HTTP status of the refusal; 0: no answer, or no server.
    """

    def __init__(self, message: str = "", status: int = 0, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.retry_after_s = status, retry_after_s


@contextmanager
def of_extra(extra: str) -> Iterator[None]:
    """Run a block that imports packages of an optional extra. Raises LauncherError if one is missing."""
    try:
        yield
    except ImportError as missing:
        raise LauncherError(f"{missing.name} is not installed: in a clone, pip install '.[{extra}]'") from missing


@dataclass(frozen=True, slots=True)
class Exit:
    """How an instance exited, or why it never ran."""

    description: str
    is_clean: bool
    """The instance exited by itself with status 0, or its status is unknown."""
    is_status_known: bool = True
    """The exit status could be read."""


class Instance(Protocol):
    """One start of one replica: a process or a pod. It never runs again once `exit` has returned a result."""

    @property
    def description(self) -> str:
        """How an operator finds this instance, for example `pid 4711`."""

    @property
    def identity(self) -> str:
        """Id that no other start of any replica has; empty: not known yet."""

    @property
    def address(self) -> str:
        """Its IP address; empty: not known yet, or shared with other replicas."""

    @property
    def pending_reason(self) -> str:
        """Why this instance does not run yet, for example because its image is pulled; empty: it runs or has exited."""

    def exit(self) -> Exit | None:
        """Return how the instance exited; None: it runs, or its state is unknown."""

    def is_source_of(self, report: Progress) -> bool:
        """Return whether this instance wrote the report, not an earlier or later instance of that name."""

    def terminate(self) -> None:
        """Send SIGTERM, so that the replica drains and exits. An instance that does not run yet will never run."""

    def kill(self) -> None:
        """Kill the instance. Retries while the API server does not answer."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """An instance that an earlier autoscaler left running. It may have exited since."""

    name: str
    instance: Instance
    incarnation: str = ""
    """Incarnation in its reports, if an autoscaler saved it."""


class Launcher(Protocol):
    """Starts replicas. Each name has at most one instance at a time."""

    @property
    def problem(self) -> str:
        """Current problem of the launcher, one sentence; empty: none."""

    @property
    def wanted(self) -> int:
        """Replica count that plans contain for KEDA or an HPA; 0: the launcher itself starts and stops replicas."""

    def start(self, name: str) -> Instance:
        """Start `name` in the background. Raises OSError on an immediate failure. Then nothing runs."""

    def save_incarnation(self, name: str, incarnation: str) -> None:
        """Save the incarnation of `name` for a later autoscaler. Raises OSError."""

    def forget(self, name: str) -> None:
        """Delete the records of an instance that has exited."""

    def find_orphans(self) -> Iterable[Orphan]:
        """Return the instances of an earlier autoscaler. Called once at the start. May wait. Raises LauncherError."""

    def last_log_line(self, name: str) -> str:
        """Return the last line that `name` logged; empty: none."""

    def close(self) -> None:
        """Finish the background work. Replicas keep running."""


def stop_orphans(launcher: Launcher, timeout_s: float) -> tuple[list[str], list[str]]:
    """Stop every replica that an earlier autoscaler left running. Return the names of those stopped and those killed.

    A replica that has not exited after `timeout_s` is killed. The records of killed replicas stay, so that the
    next autoscaler evicts them from the group. Raises LauncherError.
    """
    running = {orphan.name: orphan.instance for orphan in launcher.find_orphans() if not orphan.instance.exit()}

    def wait() -> None:
        with suppress(WaitTimeoutError):
            until(lambda: all(replica.exit() for replica in running.values()), timeout_s, "exit of all", POLL_S)

    for instance in running.values():
        instance.terminate()
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
