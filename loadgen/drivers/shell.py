"""Locust around the job: its one user runs the schedule, its statistics and web page show it, signals end it."""

import signal
import socket
from typing import Any, Final

import gevent
from gevent.event import AsyncResult, Event
from locust import User, events, task
from locust.env import Environment
from locust.exception import StopUser

from contracts.connection import Connection
from loadgen.drivers.delivery import GeneratorError
from loadgen.drivers.job import Job
from loadgen.drivers.settings import Settings
from loadgen.result import GeneratorResult
from loadgen.spec import LoadSpec

INTERRUPTED_DRAIN_S: Final = 3.0
"""After a signal or an error, how long the acknowledgements of what was sent are awaited."""


class ScheduledLoad(User):  # type: ignore[misc]  # locust's classes are untyped
    """The one user: a schedule is one sequence, however many users the web page asks for."""

    fixed_count = 1
    job: Job
    finished: AsyncResult

    @task  # type: ignore[untyped-decorator]
    def replay(self) -> None:
        """Carry out the whole load, once."""
        try:
            self.job.run()
        except Exception as failure:  # Locust would log it and start the load again
            self.finished.set_exception(failure)
        else:
            self.finished.set(None)
        raise StopUser


def run(spec: LoadSpec, connection: Connection, settings: Settings) -> GeneratorResult:
    """Run one load to its end, or to SIGTERM or SIGINT; the result says what went wrong.

    Raises GeneratorError where the client cannot be made at all.
    """
    environment = Environment(user_classes=[ScheduledLoad], events=events)
    stopped, finished = Event(), AsyncResult()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stopped.set)
    job = Job(spec, connection, settings, pause=gevent.sleep, settled=_statistics(environment, spec.workload))
    ScheduledLoad.job, ScheduledLoad.finished = job, finished
    taken = _port_problem(settings)
    if taken is not None:
        return job.result(interrupted=False, error=taken)

    runner = environment.create_local_runner()
    page = environment.create_web_ui(settings.web_host, settings.web_port) if settings.web_port else None
    runner.start(1, spawn_rate=1)
    gevent.wait([stopped, finished], count=1)
    interrupted = not finished.ready()
    error = None if interrupted or finished.exception is None else finished.exception
    if interrupted:
        runner.stop()
    job.drain(INTERRUPTED_DRAIN_S if interrupted or error else settings.drain_deadline_s)
    runner.quit()
    if page is not None:
        page.stop()
    if error is not None and not isinstance(error, GeneratorError):
        raise error
    return job.result(interrupted=interrupted, error=None if error is None else str(error))


def _statistics(environment: Environment, name: str) -> Any:
    """Return what tells Locust's statistics of each settled event."""

    def settled(size: int, latency_s: float, error: Any) -> None:
        environment.events.request.fire(
            request_type="kafka",
            name=name,
            response_time=latency_s * 1000,
            response_length=size,
            exception=None if error is None else RuntimeError(error.str()),
            context={},
        )

    return settled


def _port_problem(settings: Settings) -> str | None:
    """Return why the web port cannot be had: Locust would report it only in its log."""
    if not settings.web_port:
        return None
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.web_host, settings.web_port))
        except OSError as taken:
            address = f"{settings.web_host}:{settings.web_port}"
            return f"web page at {address}: {taken.strerror}; choose another WEB_PORT"
    return None
