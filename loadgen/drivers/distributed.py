"""One load split among Locust's workers, each of which sends every n-th event: the messages, the master, a worker.

Locust's own messages carry users and statistics; these carry the load. No worker sends before all are ready, and a
worker that dies makes the load incomplete.
"""

import time
from collections.abc import Iterator
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
from locust import runners
from locust.runners import MasterRunner, WorkerRunner

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.validation import InvalidSettingsError
from loadgen.drivers.job import Job, await_start, result_of
from loadgen.drivers.sender import GeneratorError
from loadgen.faults import LATEST_US
from loadgen.result import READY_FILE, GeneratorResult, Part
from loadgen.schedule import Schedule
from loadgen.spec import DriverSettings, LoadSpec

SHARE, READY, CLOCK, START, STOP, DONE = (
    f"tailpack-{kind}" for kind in ("share", "ready", "clock", "start", "stop", "done")
)
POLL_S: Final = 0.2
"""How often the master checks which workers are alive."""
STOPPED_S: Final = 10.0
"""How long the results of workers are awaited after they were stopped."""
REPORT_S: Final = 5.0
"""How long a worker may take to report after the drain, and to answer a query of its clock."""
SILENT_S: Final = 15
"""How long a worker's heartbeat may be missing. One that catches up with a flood, or waits for a core, is silent for
seconds."""
CLOCK_QUERIES: Final = 5
"""Queries of a worker's clock; the answer with the shortest round trip counts."""
MAX_CLOCK_OFFSET_US: Final = 2_000
"""Largest difference of clocks among the processes of one load."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the load that a worker sends."""

    load: LoadSpec
    namespace: str
    index: int
    of: int


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's answer to its share."""

    made_by: str
    """Versions of the programs that make the schedule."""
    schedule: str
    """Digest of all events: only shares of the same schedule add up."""
    problem: str = ""
    """Why it cannot send; else empty."""


def versions() -> str:
    """Return the versions that master and workers must have in common."""
    return f"tailpack {version('tailpack')}, locust {locust.__version__}"


def digest(schedule: Schedule) -> str:
    """Return a text that differs where schedules do."""
    parts = (schedule.offset_us, schedule.partition, schedule.key)
    return sha256(b"".join(b"-" if one is None else one.tobytes() for one in parts)).hexdigest()


class Leader:
    """The master: it shares the load out, starts it, and collects the results."""

    def __init__(
        self, runner: MasterRunner, spec: LoadSpec, connection: Connection, settings: DriverSettings, stopped: Event
    ) -> None:
        runners.HEARTBEAT_LIVENESS = SILENT_S // runners.HEARTBEAT_INTERVAL
        self._runner = runner
        self._spec = spec
        self._connection = connection
        self._settings = settings
        self._stopped = stopped
        self._schedule = spec.schedule()
        self._inbox: Queue = Queue()
        self._workers: list[str] = []
        self._parts: dict[str, Part] = {}
        self._clock_offset_us = 0
        for kind in (READY, CLOCK, DONE):
            runner.register_message(
                kind, lambda environment, msg, **_: self._inbox.put((msg.type, msg.node_id, msg.data))
            )

    def lead(self, *, spawn: bool) -> GeneratorResult:
        """Run the load. spawn: start Locust's users, too, where Locust does not do so itself."""
        started_us, error = None, None
        try:
            self._gather()
            self._share_out()
            for worker in self._workers:
                self._check_clock(worker)
            (Path(self._settings.out_dir) / READY_FILE).touch()
            started_us = await_start(self._settings, self._wait)
            if spawn:
                self._runner.start(len(self._workers), spawn_rate=len(self._workers))
            self._send_to_all(START, started_us)
            self._collect(started_us)
        except GeneratorError as wrong:
            error = str(wrong)
        if self._stopped.is_set() or error:
            self._send_to_all(STOP, None)
            deadline_s = time.monotonic() + STOPPED_S
            while (waiting := self._unfinished() - self._dead()) and time.monotonic() < deadline_s:
                self._keep(self._messages(DONE, waiting))
        return result_of(
            self._spec,
            self._schedule,
            list(self._parts.values()),
            started_us,
            error=error,
            interrupted=self._stopped.is_set(),
            workers=len(self._workers),
            clock_offset_us=self._clock_offset_us,
        )

    def _gather(self) -> None:
        """Wait for the workers."""
        wanted, deadline_s = self._settings.workers, time.monotonic() + self._settings.connect_deadline_s
        while len(found := [one.id for one in self._runner.clients.ready]) < wanted:
            if time.monotonic() > deadline_s:
                raise GeneratorError(
                    f"{len(found)} of {wanted} load workers came to {self._settings.listen} within "
                    f"{self._settings.connect_deadline_s:g} s: start the others with TAILPACK_MASTER at that address"
                )
            self._wait(POLL_S)
        self._workers = sorted(found)[:wanted]

    def _share_out(self) -> None:
        """Send each worker its share, and wait until all are ready."""
        for index, worker in enumerate(self._workers):
            share = Share(load=self._spec, namespace=self._connection.namespace, index=index, of=len(self._workers))
            self._runner.send_message(SHARE, msgspec.json.encode(share), worker)
        for worker, data in self._answers(READY, self._workers, 2 * self._settings.connect_deadline_s):
            ready = msgspec.msgpack.decode(data, type=Ready)
            if ready.problem:
                raise GeneratorError(f"load worker {self._name(worker)}: {ready.problem}")
            if (ready.made_by, ready.schedule) != (versions(), digest(self._schedule)):
                raise GeneratorError(
                    f"load worker {self._name(worker)} has {ready.made_by} and would send another schedule "
                    f"than this master, which has {versions()}: install the same everywhere"
                )

    def _check_clock(self, worker: str) -> None:
        """Raise GeneratorError where a worker's clock is certainly apart from this one."""
        answers: list[tuple[int, int]] = []  # half of the round trip, which bounds the error, and the offset; µs
        for _ in range(CLOCK_QUERIES):
            asked_us = now_us()
            self._runner.send_message(CLOCK, None, worker)
            ((_, data),) = self._answers(CLOCK, [worker], REPORT_S)
            half_us = (now_us() - asked_us) // 2
            answers.append((half_us, msgspec.msgpack.decode(data, type=int) - asked_us - half_us))
        half_us, offset_us = min(answers)
        if abs(offset_us) > MAX_CLOCK_OFFSET_US + half_us:
            raise GeneratorError(
                f"load worker {self._name(worker)}: its clock is {abs(offset_us) / 1000:,.1f} ms "
                f"{'ahead of' if offset_us > 0 else 'behind'} this master's, at most {MAX_CLOCK_OFFSET_US // 1000} ms "
                "are allowed: let both follow one time server"
            )
        self._clock_offset_us = max(self._clock_offset_us, offset_us, key=abs)

    def _collect(self, started_us: int) -> None:
        """Wait until all workers are done, or the load is stopped.

        Raises GeneratorError where nothing was sent for a drain's time after the last event was due: a worker that
        hangs is alive by its heartbeat.
        """
        patience_us = round((self._settings.drain_deadline_s + REPORT_S) * 1e6)
        last_us, before = started_us + int(self._schedule.offset_us.max(initial=0)) + LATEST_US, -1
        while (waiting := self._unfinished()) and not self._stopped.is_set():
            if (settled := self._runner.stats.total.num_requests) != before:
                before, last_us = settled, max(last_us, now_us())
            if now_us() > last_us + patience_us:
                raise GeneratorError(
                    f"load worker {self._name(min(waiting))} has said nothing of its share for "
                    f"{patience_us / 1e6:g} s after the last event: the run is invalid; see its own log"
                )
            self._keep(self._messages(DONE, waiting))
            self._check_alive(self._unfinished())

    def _keep(self, messages: list[tuple[str, bytes]]) -> None:
        self._parts |= {worker: msgspec.msgpack.decode(data, type=Part) for worker, data in messages}

    def _answers(self, kind: str, workers: list[str], within_s: float) -> Iterator[tuple[str, bytes]]:
        """Yield one answer of each worker. Raises GeneratorError for one that does not answer, or dies."""
        waiting, deadline_s = set(workers), time.monotonic() + within_s
        while waiting:
            if time.monotonic() > deadline_s:
                raise GeneratorError(f"load worker {self._name(min(waiting))} does not answer: see its own log")
            for worker, data in self._messages(kind, waiting):
                waiting.discard(worker)
                yield worker, data
            self._check_alive(waiting)

    def _messages(self, kind: str, waiting: set[str]) -> list[tuple[str, bytes]]:
        """Return the workers' messages of one kind; earlier messages of other kinds are dropped."""
        try:
            found = [self._inbox.get(timeout=POLL_S)]
        except Empty:
            found = []
        while not self._inbox.empty():
            found.append(self._inbox.get())
        return [(worker, data) for of, worker, data in found if of == kind and worker in waiting]

    def _check_alive(self, waiting: set[str]) -> None:
        if gone := waiting & self._dead():
            raise GeneratorError(
                f"load worker {self._name(min(gone))} has died: a share of the events is missing, and the run invalid"
            )

    def _unfinished(self) -> set[str]:
        return set(self._workers) - set(self._parts)

    def _dead(self) -> set[str]:
        return set(self._workers) - {one.id for one in self._runner.clients.all if one.state != "missing"}

    def _send_to_all(self, kind: str, message: Any) -> None:
        for worker in self._workers:
            self._runner.send_message(kind, message, worker)

    def _name(self, worker: str) -> str:
        return f"{self._workers.index(worker) + 1} of {len(self._workers)} ({worker})"

    def _wait(self, pause_s: float) -> None:
        gevent.sleep(pause_s)
        if self._stopped.is_set():
            raise GeneratorError("stopped before the load began")


class Follower:
    """A worker: it sends the share that its master assigns, once."""

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
        runner.register_message(CLOCK, lambda environment, msg, **_: self._report(CLOCK, now_us()))

    def stop(self) -> None:
        """End early; the master gets the result of what was sent."""
        self._stopped.set()

    def follow(self) -> bool:
        """Send the share; return whether all of it was acknowledged."""
        share = msgspec.json.decode(self._inbox.get(), type=Share)
        connection = replace(self._connection, namespace=share.namespace)
        try:
            job = Job(share.load, connection, self._settings, settled=self._settled, index=share.index, of=share.of)
            job.connect(self._settings.connect_deadline_s)
        except (GeneratorError, InvalidSettingsError) as wrong:
            self._report(READY, Ready(made_by=versions(), schedule="", problem=str(wrong)))
            return False
        self._report(READY, Ready(made_by=versions(), schedule=digest(job.schedule)))
        part = job.run(lambda: self._await_start(job), self._stopped, self._settings.drain_deadline_s)
        self._report(DONE, part)
        return part.first_error is None and not part.interrupted

    def _await_start(self, job: Job) -> int:
        while self._inbox.empty():
            job.breathe(0.02)
        return int(self._inbox.get())

    def _report(self, kind: str, what: Any) -> None:
        self._runner.send_message(kind, msgspec.msgpack.encode(what))
