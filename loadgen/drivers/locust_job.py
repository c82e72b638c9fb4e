"""A load inside Locust: shown by Locust, ended by signals."""

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
    """Stands for a process that sends. A schedule is one sequence: more users do not make more load."""

    wait_time = constant(1)

    @task  # type: ignore[untyped-decorator]
    def present(self) -> None:
        """Be there: the load is sent beside the users."""


def run(spec: LoadSpec, connection: Connection, settings: DriverSettings) -> GeneratorResult:
    """Run one load to its end, or to SIGTERM or SIGINT; the result says what went wrong.

    Raises GeneratorError where nothing can begin.
    """
    environment = Environment(user_classes=[ScheduledLoad], events=events)
    stopped = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stopped.set)
    quiet()
    job = Job(spec, connection, settings, settled=statistics(environment, settings))
    taken = _port_problem(settings.web_host, settings.web_port, "web page", "WEB_PORT") or _port_problem(
        settings.http_host, settings.http_port, "metrics", "TAILPACK_HTTP_PORT"
    )
    if taken is not None:
        return job.result(error=taken)
    runner = environment.create_local_runner()
    with _page(environment, settings), _metrics(settings, job.metrics()):
        runner.start(1, spawn_rate=1)
        result = send(job, settings, stopped)
        runner.quit()
    return result


def send(job: Job, settings: DriverSettings, stopped: Event) -> GeneratorResult:
    """Connect, report that it is ready, await the start, and send."""

    def begin() -> int:
        job.connect(settings.connect_deadline_s)
        (Path(settings.out_dir) / part_file_name(READY_FILE, settings.part, settings.parts)).touch()
        return await_start(settings, job.poll_and_pause)

    return job.run(begin, stopped, settings.drain_deadline_s)


def quiet() -> None:
    """Keep the garbage collector from stopping a burst: what was imported is not searched again, and an event, which
    has no cycles, is rarely looked at."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def statistics(environment: Environment, settings: DriverSettings) -> Any:
    """Return what tells Locust's statistics of each settled event, under what its response times are."""
    kind, name = ("POST", "/orders: send to answer") if settings.order_url else ("kafka", "send to acknowledgement")

    def settled(size: int, latency_s: float, error: str | None) -> None:
        environment.events.request.fire(
            request_type=kind,
            name=name,
            response_time=latency_s * 1000,
            response_length=size,
            exception=None if error is None else RuntimeError(error),
            context={},
        )

    return settled


@contextmanager
def _page(environment: Environment, settings: DriverSettings) -> Iterator[None]:
    """Show Locust's web page, if one is wanted."""
    page = environment.create_web_ui(settings.web_host, settings.web_port) if settings.web_port else None
    try:
        yield
    finally:
        if page is not None:
            page.stop()


@contextmanager
def _metrics(settings: DriverSettings, registry: CollectorRegistry) -> Iterator[None]:
    """Answer who asks for metrics, if anybody may."""
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
    """Return why a port cannot be had: Locust would report it only in its log."""
    if not port:
        return None
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return f"{what} at {host}:{port}: {error.strerror}; choose another {setting}"
    return None
