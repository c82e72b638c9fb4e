"""Replicas as containers of a Docker engine, one container for each start of a replica.

The engine remembers for us: a container's labels tell its group and replica, its name how the replica reports itself.
Each container has a thread of its own, which starts it and waits for its end; nobody else waits.
"""

import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from requests.exceptions import ReadTimeout, RequestException

from autoscaler.live.launcher import Exit, LauncherError, Left
from contracts.children import how_it_ended
from contracts.progress import Progress

GROUP: Final = "tailpack.group"
REPLICA: Final = "tailpack.replica"
ANSWER_S: Final = 10.0
"""An engine that has not answered by then is silent."""
WAIT_S: Final = 30.0
"""How long one question for a container's end may stand; then it is asked again, in case the connection is dead."""
AGAIN_S: Final = 0.5
AT_ONCE: Final = 4
"""Requests to the engine side by side."""
CLOSE_S: Final = 5.0
LINES: Final = 5
"""The last line that is not blank is among so many."""
FAILED: Final = (DockerException, RequestException)
_ALREADY: Final = (404, 409)
"""The engine's answers where there is nothing to stop any more."""


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """What the containers of one group have in common."""

    group: str
    image: str
    command: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    network: str = ""
    """Empty: the engine's own."""
    memory: str = ""
    """Limit, such as 160m; empty: none."""
    volume: str = ""
    """NAME:/PATH of a volume that can be read; empty: none."""
    cpus_of: Callable[[str], float] = lambda _: 0.0
    """Replica → cores that it may use; 0: no limit."""

    def options(self, replica: str, number: int = 0) -> dict[str, Any]:
        """Return what a container is created with: nothing that can be written to but /tmp, and no capability.

        number: of its start, from 0.
        """
        options: dict[str, Any] = {
            "image": self.image,
            "command": list(self.command),
            "environment": {**self.environ, "TAILPACK_REPLICA": replica, "TAILPACK_REPLICA_NUMBER": str(number)},
            "labels": {GROUP: self.group, REPLICA: replica},
            "name": f"{self.group}.{replica}.new-{secrets.token_hex(4)}",
            "init": True,
            "read_only": True,
            "tmpfs": {"/tmp": ""},  # noqa: S108
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
        }
        if self.network:
            options["network"] = self.network
        if self.memory:
            options["mem_limit"] = self.memory
        if self.volume:
            options["volumes"] = [f"{self.volume}:ro"]
        if cores := self.cpus_of(replica):
            options["nano_cpus"] = round(cores * 1e9)
        return options


class ReplicaContainer:
    """One container, being started, running, or ended."""

    def __init__(self, launcher: "DockerLauncher", replica: str, container: Any = None) -> None:
        self.replica = replica
        self.last_words = ""
        self._launcher = launcher
        self._number = next(launcher.numbers) if container is None else 0
        self._container = container
        self._ended: Exit | None = None
        self._unwanted = False
        self._lock = threading.Lock()
        """Held while it is started: who asks to stop does so before that, or after it."""
        self.begun = threading.Event()
        """It was started, or could not be."""
        self.thread = threading.Thread(target=self._live, name=f"container of {replica}", daemon=True)

    @property
    def where(self) -> str:
        """The container's id."""
        return f"container {self.id}" if self._container else "a container to come"

    @property
    def id(self) -> str:
        """As `docker ps` shows it; empty: not created yet."""
        return str(self._container.short_id) if self._container else ""

    @property
    def pending(self) -> str:
        """Whether the engine is still at it."""
        return "" if self._container or self._ended else "the engine is creating its container"

    def exit(self) -> Exit | None:
        """Return how it ended, or why it never ran."""
        return self._ended

    def wrote(self, report: Progress) -> bool:
        """Tell it by the host's name: the container's id, or in the host's own network that of the machine."""
        return bool(self._container) and report.host == self._container.attrs["Config"]["Hostname"]

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        self._unwanted = True
        self._launcher.do(lambda: self._signal("SIGTERM"))

    def kill(self) -> None:
        """Send SIGKILL, until it has ended."""
        self._unwanted = True
        self._launcher.do(self._kill)

    def report_as(self, incarnation: str) -> None:
        """Keep `incarnation` in the container's name."""
        name = f"{self._launcher.spec.group}.{self.replica}.{incarnation}"
        self._launcher.do(lambda: self._container.rename(name))

    def remove(self) -> None:
        """Remove what is left of it."""
        self._launcher.do(lambda: self._container and self._container.remove(force=True))

    def _signal(self, signal: str) -> None:
        with self._lock:
            if self._container is None or self._ended is not None:
                return
            try:
                self._container.kill(signal)
            except APIError as refused:
                if refused.status_code not in _ALREADY:
                    raise

    def _kill(self) -> None:
        while self._ended is None and not self._launcher.closed.is_set():
            try:
                return self._signal("SIGKILL")
            except FAILED as failed:
                self._launcher.trouble = _why(failed)
                self._launcher.closed.wait(AGAIN_S)
        return None

    def _live(self) -> None:
        """Start it, unless it runs; wait for its end."""
        try:
            if self._container is None:
                self._create()
        except FAILED as failed:
            self._ended = Exit(_why(failed), clean=False)
        finally:
            self.begun.set()
        while self._ended is None and not self._launcher.closed.is_set():
            try:
                status = int(self._container.wait(timeout=WAIT_S)["StatusCode"])
                if self._launcher.closed.is_set():
                    return
                self._container.reload()
                state = self._container.attrs["State"]
                written = self._container.logs(tail=LINES).decode(errors="replace").splitlines()
                self.last_words = next((line.strip() for line in reversed(written) if line.strip()), "")
            except NotFound:
                self._ended = Exit("its container was removed", clean=False)
            except FAILED as failed:
                if not isinstance(failed, ReadTimeout) and "Read timed out" not in str(failed):
                    self._launcher.trouble = _why(failed)
                    self._launcher.closed.wait(AGAIN_S)
            else:
                self._launcher.trouble = ""
                how = how_it_ended(status if status < 128 else 128 - status)
                oom = ": more memory than it may have" if state.get("OOMKilled") else ""
                self._ended = Exit(how + oom, clean=status == 0)

    def _create(self) -> None:
        made = self._launcher.client.containers.create(**self._launcher.spec.options(self.replica, self._number))
        with self._lock:
            if self._unwanted:
                self._ended = Exit("never ran", clean=True)
                made.remove(force=True)
                return
            try:
                made.start()
            except BaseException:
                made.remove(force=True)
                raise
            self._container = made
        self._launcher.trouble = ""


class DockerLauncher:
    """Starts containers on the engine that DOCKER_HOST names. Raises LauncherError where it does not answer."""

    wanted = 0

    def __init__(self, spec: ContainerSpec) -> None:
        self.spec = spec
        self.trouble = ""
        self.closed = threading.Event()
        self.client = _client()
        self.numbers = count()
        self._known: dict[str, ReplicaContainer] = {}
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="docker")
        self._asked: list[Future[None]] = []

    def do(self, what: Any) -> None:
        """Have it done in the background; what fails is told as trouble."""

        def told() -> None:
            try:
                what()
            except NotFound:
                pass
            except FAILED as failed:
                self.trouble = _why(failed)

        self._asked = [one for one in self._asked if not one.done()]
        self._asked.append(self._pool.submit(told))

    def start(self, name: str) -> ReplicaContainer:
        """Begin to create and start a container for `name`."""
        if name in self._known:
            self._known[name].remove()
        return self._watched(ReplicaContainer(self, name))

    def remember(self, name: str, incarnation: str) -> None:
        """Have the container renamed."""
        self._known[name].report_as(incarnation)

    def forget(self, name: str) -> None:
        """Have the container removed."""
        if (gone := self._known.pop(name, None)) is not None:
            gone.remove()

    def left_behind(self) -> Iterator[Left]:
        """Yield the containers of this group."""
        try:
            mine = {"label": f"{GROUP}={self.spec.group}"}
            found = self.client.containers.list(all=True, filters=mine, ignore_removed=True)
        except FAILED as failed:
            raise LauncherError(_why(failed)) from failed
        for container in found:
            name = container.labels.get(REPLICA, "")
            if container.status == "created":  # its autoscaler ended before it started it
                self.do(container.remove)
                continue
            if container.status == "removing":  # it has ended, and whoever knew how has taken that in
                continue
            incarnation = container.name.rpartition(".")[2]
            instance = self._watched(ReplicaContainer(self, name, container))
            if container.status in {"exited", "dead"}:
                instance.thread.join(ANSWER_S)
            yield Left(name, instance, "" if incarnation.startswith("new-") else incarnation)

    def last_log_line(self, name: str) -> str:
        """Return what it wrote last before it ended."""
        return self._known[name].last_words if name in self._known else ""

    def close(self) -> None:
        """Finish what was asked for. Containers run on."""
        for one in self._known.values():
            one.begun.wait(CLOSE_S)
        wait(self._asked, timeout=CLOSE_S)
        self.closed.set()
        self._pool.shutdown(wait=False)
        self.client.close()

    def _watched(self, instance: ReplicaContainer) -> ReplicaContainer:
        self._known[instance.replica] = instance
        instance.thread.start()
        return instance


def _client() -> Any:
    try:
        return docker.from_env(timeout=ANSWER_S)
    except FAILED as failed:
        raise LauncherError(_why(failed)) from failed


def _why(failed: Exception) -> str:
    """Return one sentence: what the engine refuses, and what to do where we know it."""
    said = str(failed)
    if isinstance(failed, ImageNotFound) or "No such image" in said:
        named = re.search(r"[Nn]o such image: ([^\"\s)]+)", said)
        return f"image {named[1] if named else 'of the replicas'} is not there: build it, or pull it"
    if "PermissionError" in said or "Permission denied" in said:
        return "Docker may not be used by this user: join the group docker, or set DOCKER_HOST to a proxy"
    if isinstance(failed, APIError):
        return f"Docker refuses it: {failed.explanation or said}"
    return f"Docker does not answer: start it, or set DOCKER_HOST ({type(failed).__name__}: {said[:200]})"
