"""One load split among Locust's workers, of which each sends every n-th event: what is said, and what a worker does.

Locust's own messages carry users and statistics; these carry the load. Nobody sends before all are ready, and a worker
that dies makes the load incomplete.
"""

from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from typing import Any, Final

import gevent
import locust
import msgspec
from gevent.event import Event
from gevent.queue import Queue
from locust.runners import WorkerRunner

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.validation import InvalidSettingsError
from loadgen.drivers.job import Job
from loadgen.drivers.sender import GeneratorError
from loadgen.schedule import Schedule
from loadgen.spec import DriverSettings, LoadSpec

SHARE, READY, CLOCK, START, STOP, DONE = (
    f"tailpack-{kind}" for kind in ("share", "ready", "clock", "start", "stop", "done")
)
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
        runner.register_message(CLOCK, lambda environment, msg, **_: self._say(CLOCK, now_us()))

    def stop(self) -> None:
        """End early; the master is told what was sent."""
        self._stopped.set()

    def follow(self) -> bool:
        """Send the share; return whether all of it was acknowledged."""
        share = msgspec.json.decode(self._inbox.get(), type=Share)
        connection = replace(self._connection, namespace=share.namespace)
        try:
            job = Job(share.load, connection, self._settings, settled=self._settled, index=share.index, of=share.of)
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
