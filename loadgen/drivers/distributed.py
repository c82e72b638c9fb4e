"""One load split among Locust's workers: each sends every n-th event, the master puts together what became of it.

Locust's own messages carry users and statistics; these carry the load. Nobody sends before all are ready, and a worker
that dies makes the load incomplete.
"""

import time
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import gevent
import locust
import msgspec
from gevent.event import Event
from gevent.queue import Empty, Queue
from locust.runners import MasterRunner, WorkerRunner

from contracts.connection import Connection
from contracts.validation import InvalidSettingsError
from loadgen.drivers.job import Job, await_start
from loadgen.drivers.sender import GeneratorError
from loadgen.orders import send_numbers
from loadgen.result import READY_FILE, GeneratorResult, Part
from loadgen.schedule import Schedule
from loadgen.spec import DriverSettings, LoadSpec

SHARE, READY, START, STOP, DONE = (f"tailpack-{kind}" for kind in ("share", "ready", "start", "stop", "done"))
LOOK_S: Final = 0.2
"""Between two looks who is still there."""
STOPPED_S: Final = 10.0
"""How long the results of workers are awaited that were told to stop."""
INTERRUPTED_DRAIN_S: Final = 3.0
"""After a signal or an error, how long the acknowledgements of what was sent are awaited."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told."""

    load: LoadSpec
    namespace: str
    index: int
    of: int


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What it answers."""

    made_by: str
    """Versions of what makes the schedule."""
    schedule: str
    """Digest of all events: shares of the same schedule alone add up."""
    problem: str = ""
    """Why it cannot send; else empty."""


def versions() -> str:
    """Return what master and workers must have in common."""
    return f"tailpack {version('tailpack')}, locust {locust.__version__}"


def digest(schedule: Schedule) -> str:
    """Return what differs where schedules do."""
    parts = (schedule.offset_us, schedule.partition, schedule.key)
    return sha256(b"".join(b"-" if one is None else one.tobytes() for one in parts)).hexdigest()


class Follower:
    """A worker: it does what its master says, once."""

    def __init__(self, runner: WorkerRunner, connection: Connection, settings: DriverSettings, settled: Any) -> None:
        self._runner = runner
        self._connection = connection
        self._settings = settings
        self._settled = settled
        self._inbox: Queue = Queue()
        self._stopped = Event()
        for kind in (SHARE, START):
            runner.register_message(kind, lambda environment, msg, **_: self._inbox.put(msg.data))
        runner.register_message(STOP, lambda environment, msg, **_: self._stopped.set())

    def stop(self) -> None:
        """End early; the master is told what was sent."""
        self._stopped.set()

    def follow(self) -> bool:
        """Send the share; return whether all of it was acknowledged."""
        share = msgspec.json.decode(self._inbox.get(), type=Share)
        connection = replace(self._connection, namespace=share.namespace)
        try:
            job = Job(
                share.load,
                connection,
                self._settings,
                pause=gevent.sleep,
                settled=self._settled,
                index=share.index,
                of=share.of,
            )
            job.connect(self._settings.connect_deadline_s)
        except (GeneratorError, InvalidSettingsError) as wrong:
            self._say(READY, Ready(made_by=versions(), schedule="", problem=str(wrong)))
            return False
        self._say(READY, Ready(made_by=versions(), schedule=digest(job.schedule)))
        sending = gevent.spawn(self._send, job)
        gevent.wait([sending, self._stopped], count=1)
        interrupted = not sending.ready()
        sending.kill()
        error = None if interrupted or sending.value is None else str(sending.value)
        job.drain(INTERRUPTED_DRAIN_S if interrupted or error else self._settings.drain_deadline_s)
        part = job.part(interrupted=interrupted, error=error)
        self._say(DONE, part)
        return part.first_error is None and not interrupted

    def _send(self, job: Job) -> GeneratorError | None:
        try:
            while self._inbox.empty():
                job.breathe(0.02)
            job.send(self._inbox.get())
        except GeneratorError as failure:
            return failure
        return None

    def _say(self, kind: str, what: Any) -> None:
        self._runner.send_message(kind, msgspec.msgpack.encode(what))


class Leader:
    """The master: it shares the load out, says when it begins, and gathers the results."""

    def __init__(
        self, runner: MasterRunner, spec: LoadSpec, connection: Connection, settings: DriverSettings, stopped: Event
    ) -> None:
        self._runner = runner
        self._spec = spec
        self._connection = connection
        self._settings = settings
        self._stopped = stopped
        self._schedule = spec.schedule()
        self._inbox: Queue = Queue()
        self._workers: list[str] = []
        for kind in (READY, DONE):
            runner.register_message(kind, lambda environment, msg, **_: self._inbox.put((msg.node_id, msg.data)))

    def lead(self, *, spawn: bool) -> GeneratorResult:
        """Run the load. spawn: start Locust's users, too, where Locust does not do so itself."""
        parts: dict[str, Part] = {}
        started_us, error = None, None
        try:
            self._gather()
            self._share_out()
            (Path(self._settings.out_dir) / READY_FILE).touch()
            started_us = await_start(self._settings, self._wait)
            if spawn:
                self._runner.start(len(self._workers), spawn_rate=len(self._workers))
            self._tell(START, started_us)
            self._collect(parts)
        except GeneratorError as wrong:
            error = str(wrong)
        if self._stopped.is_set() or error:
            self._tell(STOP, None)
            self._collect_the_rest(parts)
        return GeneratorResult.of(
            list(parts.values()),
            scheduled=len(send_numbers(self._spec, self._schedule)),
            events=len(self._schedule),
            latency_target_s=self._spec.latency_target_s,
            started_us=started_us,
            error=error,
            interrupted=self._stopped.is_set(),
            workers=len(self._workers),
        )

    def _gather(self) -> None:
        """Wait for the workers."""
        wanted, deadline = self._settings.workers, time.monotonic() + self._settings.connect_deadline_s
        while len(found := [one.id for one in self._runner.clients.ready]) < wanted:
            if time.monotonic() > deadline:
                raise GeneratorError(
                    f"{len(found)} of {wanted} load workers came to {self._settings.listen} within "
                    f"{self._settings.connect_deadline_s:g} s: start the others with TAILPACK_MASTER at that address"
                )
            self._wait(LOOK_S)
        self._workers = sorted(found)[:wanted]

    def _share_out(self) -> None:
        """Tell each worker its share, and wait until all can begin."""
        for index, worker in enumerate(self._workers):
            share = Share(load=self._spec, namespace=self._connection.namespace, index=index, of=len(self._workers))
            self._runner.send_message(SHARE, msgspec.json.encode(share), worker)
        waiting, deadline = set(self._workers), time.monotonic() + 2 * self._settings.connect_deadline_s
        while waiting:
            if time.monotonic() > deadline:
                raise GeneratorError(f"load worker {self._name(min(waiting))} is not ready: see what it says itself")
            for worker, data in self._heard(waiting):
                said = msgspec.msgpack.decode(data, type=Ready)
                if said.problem:
                    raise GeneratorError(f"load worker {self._name(worker)}: {said.problem}")
                if (said.made_by, said.schedule) != (versions(), digest(self._schedule)):
                    raise GeneratorError(
                        f"load worker {self._name(worker)} has {said.made_by} and would send another schedule "
                        f"than this master, which has {versions()}: install the same everywhere"
                    )
                waiting.discard(worker)

    def _collect(self, parts: dict[str, Part]) -> None:
        """Wait until all are done, or until this is to stop."""
        while waiting := set(self._workers) - set(parts):
            if self._stopped.is_set():
                return
            for worker, data in self._heard(waiting):
                parts[worker] = msgspec.msgpack.decode(data, type=Part)

    def _collect_the_rest(self, parts: dict[str, Part]) -> None:
        deadline = time.monotonic() + STOPPED_S
        while (waiting := set(self._workers) - set(parts) - self._dead()) and time.monotonic() < deadline:
            for worker, data in self._heard(waiting, whole=False):
                parts[worker] = msgspec.msgpack.decode(data, type=Part)

    def _heard(self, waiting: set[str], *, whole: bool = True) -> list[tuple[str, bytes]]:
        """Return what workers said. Raises GeneratorError for one that is gone; not whole: it does not matter now."""
        try:
            found = [self._inbox.get(timeout=LOOK_S)]
        except Empty:
            found = []
        while not self._inbox.empty():
            found.append(self._inbox.get())
        if whole and (gone := waiting & self._dead() - {worker for worker, _ in found}):
            raise GeneratorError(
                f"load worker {self._name(min(gone))} has died: a share of the events is missing, and the run invalid"
            )
        return found

    def _dead(self) -> set[str]:
        alive = {one.id for one in self._runner.clients.all if one.state != "missing"}
        return set(self._workers) - alive

    def _tell(self, kind: str, what: Any) -> None:
        for worker in self._workers:
            self._runner.send_message(kind, what, worker)

    def _name(self, worker: str) -> str:
        return f"{self._workers.index(worker) + 1} of {len(self._workers)} ({worker})"

    def _wait(self, pause_s: float) -> None:
        gevent.sleep(pause_s)
        if self._stopped.is_set():
            raise GeneratorError("stopped before the load began")
