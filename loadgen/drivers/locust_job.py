"""Runs a load inside Locust, which shows its progress. A signal ends it."""

import gc
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event
from gevent.pywsgi import WSGIServer
from locust import User, constant, events, task
from locust.env import Environment
from prometheus_client import CollectorRegistry, make_wsgi_app

from contracts.connection import Connection
from loadgen.drivers.job import Job, await_start
from loadgen.result import READY_FILE, GeneratorResult, part_file_name
from loadgen.spec import DriverSettings, LoadSpec


class ScheduledLoad(User):  # type: ignore[misc]  # locust's classes are untyped
    """Represents the sending process as a Locust user. More users would not send more, as there is one schedule."""

    wait_time = constant(1)

    @task  # type: ignore[untyped-decorator]
    def present(self) -> None:
        """Do nothing. `Job` sends the load; Locust's users send nothing."""


def run(spec: LoadSpec, connection: Connection, settings: DriverSettings) -> GeneratorResult:
    """Run one load to its end, or until SIGTERM or SIGINT. An error that prevents or ends the load is in the result.

    Raises GeneratorError if the client cannot be created from its settings, InvalidSettingsError for an invalid trace.
    """
    environment = Environment(user_classes=[ScheduledLoad], events=events)
    stopped = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stopped.set)
    tame_garbage_collector()
    job = Job(spec, connection, settings, settled=statistics(environment))
    problem = _port_problem(settings.web_host, settings.web_port, "web page", "WEB_PORT") or _port_problem(
        settings.http_host, settings.http_port, "metrics", "TAILPACK_HTTP_PORT"
    )
    if problem is not None:
        return job.result(error=problem)
    runner = environment.create_local_runner()
    with _page(environment, settings), _metrics(settings, job.metrics()):
        runner.start(1, spawn_rate=1)
        result = send(job, settings, stopped)
        runner.quit()
    return result


def send(job: Job, settings: DriverSettings, stopped: Event) -> GeneratorResult:
    """Connect, write the ready file, wait for the start, and send."""

    def begin() -> int:
        job.connect(settings.connect_deadline_s)
        (Path(settings.out_dir) / part_file_name(READY_FILE, settings.part, settings.parts)).touch()
        return await_start(settings, job.poll_and_pause)

    return job.run(begin, stopped, settings.drain_deadline_s)


def tame_garbage_collector() -> None:
    """Keep garbage collection from delaying a burst: skip imported objects, and run rarely (events have no cycles)."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def statistics(environment: Environment) -> Any:
    """Return the function that adds each settled event to the response times in Locust's statistics."""

    def settled(size: int, latency_s: float, error: str | None) -> None:
        environment.events.request.fire(
            request_type="kafka",
            name="send to acknowledgement",
            response_time=latency_s * 1000,
            response_length=size,
            exception=None if error is None else RuntimeError(error),
            context={},
        )

    return settled


@contextmanager
def _page(environment: Environment, settings: DriverSettings) -> Iterator[None]:
    page = environment.create_web_ui(settings.web_host, settings.web_port) if settings.web_port else None
    try:
        yield
    finally:
        if page is not None:
            page.stop()


@contextmanager
def _metrics(settings: DriverSettings, registry: CollectorRegistry) -> Iterator[None]:
    """Serve the metrics if a port is configured."""
    if not settings.http_port:
        yield
        return
    server = WSGIServer((settings.http_host, settings.http_port), make_wsgi_app(registry), log=None)
    server.start()
    try:
        yield
    finally:
        server.stop()


def _port_problem(host: str, port: int, what: str, setting: str) -> str | None:
    """Return why a port is not available. Locust would only log it."""
    if not port:
        return None
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return f"{what} at {host}:{port}: {error.strerror}; choose another {setting}"
    return None
