"""A load inside Locust: alone, as the master of workers, or as a worker; shown by Locust, ended by signals."""

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
from locust.exception import RPCError
from prometheus_client import CollectorRegistry, make_wsgi_app

from contracts.connection import Connection
from loadgen.drivers.distributed import Follower, Leader
from loadgen.drivers.job import INTERRUPTED_DRAIN_S, Job, await_start, result_of
from loadgen.drivers.sender import GeneratorError
from loadgen.result import READY_FILE, GeneratorResult
from loadgen.spec import DriverSettings, LoadSpec, address


class ScheduledLoad(User):  # type: ignore[misc]  # locust's classes are untyped
    """Stands for a process that sends. A schedule is one sequence: more users do not make more load."""

    wait_time = constant(1)

    @task  # type: ignore[untyped-decorator]
    def present(self) -> None:
        """Be there: the load is sent beside the users."""


def run(spec: LoadSpec | None, connection: Connection, settings: DriverSettings) -> GeneratorResult | bool:
    """Run one load to its end, or to SIGTERM or SIGINT; the result says what went wrong.

    A worker, whose load is None, returns whether its share went well. Raises GeneratorError where nothing can begin.
    """
    environment = Environment(user_classes=[ScheduledLoad], events=events)
    stopped = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stopped.set)
    quiet()
    if spec is None:
        return _follow(environment, connection, settings, stopped)
    taken = _port_problem(settings.web_host, settings.web_port, "web page", "WEB_PORT") or _port_problem(
        settings.http_host, settings.http_port, "metrics", "TAILPACK_HTTP_PORT"
    )
    if settings.workers and not taken:
        taken = _port_problem(*address(settings.listen), "load workers", "TAILPACK_LISTEN")
    if taken is not None:
        return result_of(spec, spec.schedule(), [], error=taken)
    if settings.workers:
        runner = environment.create_master_runner(*address(settings.listen))
        with _page(environment, settings):
            result = Leader(runner, spec, connection, settings, stopped).lead(spawn=True)
            runner.quit()
        return result
    runner = environment.create_local_runner()
    job = Job(spec, connection, settings, settled=statistics(environment, settings))
    with _page(environment, settings), _metrics(settings, job.metrics()):
        runner.start(1, spawn_rate=1)
        result = alone(job, spec, settings, stopped)
        runner.quit()
    return result


def alone(job: Job, spec: LoadSpec, settings: DriverSettings, stopped: Event) -> GeneratorResult:
    """Send all of a load from this process."""

    def begin() -> int:
        job.connect(settings.connect_deadline_s)
        (Path(settings.out_dir) / READY_FILE).touch()
        return await_start(settings, job.breathe)

    part = job.run(begin, stopped, settings.drain_deadline_s)
    return result_of(spec, job.schedule, [part], job.started_us)


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


def _follow(environment: Environment, connection: Connection, settings: DriverSettings, stopped: Event) -> bool:
    host, port = address(settings.master)
    try:
        runner = environment.create_worker_runner(host, port)
    except (RPCError, OSError) as missing:
        raise GeneratorError(f"no load master answers at {settings.master}: {missing}") from missing
    follower = Follower(runner, connection, settings, statistics(environment, settings))
    following = gevent.spawn(follower.follow)
    gevent.wait([following, stopped], count=1)
    if stopped.is_set():
        follower.stop()
        following.join(INTERRUPTED_DRAIN_S + 2)
    while len(runner.greenlet) and not stopped.is_set():  # until the master sends everybody home
        gevent.sleep(0.1)
    runner.greenlet.join(1)
    return bool(following.ready() and following.value)


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
        except OSError as taken:
            return f"{what} at {host}:{port}: {taken.strerror}; choose another {setting}"
    return None
