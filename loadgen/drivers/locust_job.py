"""One load from ready to drained: carried out by the single Locust user, shown by Locust, ended by signals."""

import gc
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import gevent
import numpy as np
from confluent_kafka import KafkaError
from gevent.event import AsyncResult, Event
from gevent.pywsgi import WSGIServer
from locust import User, events, task
from locust.env import Environment
from locust.exception import StopUser
from prometheus_client import CollectorRegistry, make_wsgi_app

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.topics import qualified
from loadgen import orders
from loadgen.drivers.metrics import GeneratorMetrics
from loadgen.drivers.sender import GeneratorError, Sender
from loadgen.pacing import Pacer
from loadgen.result import READY_FILE, GeneratorResult, lateness_limit_us, lateness_percentile_us
from loadgen.spec import DriverSettings, LoadSpec

PUNCTUAL_US: Final = 2_000
INTERRUPTED_DRAIN_S: Final = 3.0
"""After a signal or an error, how long the acknowledgements of what was sent are awaited."""


class Job:
    """Runs the load; its result can be asked for at any time."""

    def __init__(
        self,
        spec: LoadSpec,
        connection: Connection,
        settings: DriverSettings,
        *,
        pause: Callable[[float], None],
        settled: Callable[[int, float, KafkaError | None], None],
    ) -> None:
        self._spec = spec
        self._settings = settings
        self._pause = pause
        self._schedule = spec.schedule()
        self._orders = orders.Orders(connection.namespace, spec.seed, spec.invalid_share)
        topic, self._partitions = orders.input_topic(spec)
        self._sender = Sender(connection, qualified(connection.namespace, topic), pause=pause, settled=settled)
        self._pacer: Pacer | None = None
        self._started_us: int | None = None

    def metrics(self) -> CollectorRegistry:
        """Return how far the load is and how late, as Prometheus metrics."""
        registry = CollectorRegistry()
        limit_us = lateness_limit_us(self._spec.latency_target_s)
        registry.register(GeneratorMetrics(len(self._schedule), self._sender, lambda: self._pacer, limit_us))
        return registry

    def run(self) -> None:
        """Connect, say so, wait for the start, send. Raises GeneratorError."""
        self._sender.connect(self._partitions, self._settings.connect_deadline_s)
        (Path(self._settings.out_dir) / READY_FILE).touch()
        self._started_us = self._await_start()
        self._pacer = Pacer(
            self._schedule.offset_us,
            orders.events(self._spec, self._schedule, self._orders, self._started_us),
            started_us=self._started_us,
            send=self._sender.send,
            now_us=now_us,
            pause=self._breathe,
        )
        self._pacer.run()

    def drain(self, deadline_s: float) -> None:
        """Wait for the acknowledgements of what was sent."""
        self._sender.drain(deadline_s)

    def result(self, *, interrupted: bool, error: str | None = None) -> GeneratorResult:
        """Return what was done so far."""
        sender = self._sender
        lateness_us = self._schedule.offset_us[:0] if self._pacer is None else self._pacer.lateness_us
        p99_us = lateness_percentile_us(lateness_us, 0.99)
        limit_us = lateness_limit_us(self._spec.latency_target_s)
        return GeneratorResult(
            scheduled=len(self._schedule),
            produced=sender.produced,
            acknowledged=sender.acknowledged,
            failed=sender.failed,
            invalid_orders=sum(self._orders.flaw(number) is not None for number in range(sender.produced)),
            interrupted=interrupted,
            started_us=self._started_us,
            ended_us=now_us(),
            lateness_p50_us=lateness_percentile_us(lateness_us, 0.5),
            lateness_p99_us=p99_us,
            lateness_max_us=lateness_percentile_us(lateness_us, 1.0),
            within_2ms=float(np.mean(lateness_us <= PUNCTUAL_US)) if len(lateness_us) else None,
            lateness_limit_us=limit_us,
            valid=p99_us is not None and p99_us <= limit_us,
            cpu_s=round(time.process_time(), 3),
            first_error=error or sender.first_error,
        )

    def _breathe(self, pause_s: float) -> None:
        self._sender.poll()
        self._pause(pause_s)

    def _await_start(self) -> int:
        """Return the start of the run, µs since the epoch."""
        path = Path(self._settings.start_file)
        deadline = time.monotonic() + self._settings.start_deadline_s
        while time.monotonic() < deadline:
            text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
            if text.isdecimal():
                return int(text)
            self._breathe(0.02)
        raise GeneratorError(
            f"{path}: no start time after {self._settings.start_deadline_s:g} s; "
            "whoever starts the generator must write one (µs since the epoch)"
        )


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


def run(spec: LoadSpec, connection: Connection, settings: DriverSettings) -> GeneratorResult:
    """Run one load to its end, or to SIGTERM or SIGINT; the result says what went wrong.

    Raises GeneratorError where the client cannot be made at all.
    """
    environment = Environment(user_classes=[ScheduledLoad], events=events)
    stopped, finished = Event(), AsyncResult()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stopped.set)
    gc.freeze()  # what was imported is not searched again …
    gc.set_threshold(100_000, 50, 100)  # … and an event, which has no cycles, is rarely looked at: a search stops all
    job = Job(spec, connection, settings, pause=gevent.sleep, settled=_statistics(environment, spec.workload))
    ScheduledLoad.job, ScheduledLoad.finished = job, finished
    taken = _port_problem(settings.web_host, settings.web_port, "web page", "WEB_PORT") or _port_problem(
        settings.http_host, settings.http_port, "metrics", "TAILPACK_HTTP_PORT"
    )
    if taken is not None:
        return job.result(interrupted=False, error=taken)

    runner = environment.create_local_runner()
    page = environment.create_web_ui(settings.web_host, settings.web_port) if settings.web_port else None
    metrics = None
    if settings.http_port:
        metrics = WSGIServer((settings.http_host, settings.http_port), make_wsgi_app(job.metrics()), log=None)
        metrics.start()
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
    if metrics is not None:
        metrics.stop()
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
