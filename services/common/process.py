"""The service process. It reads settings, checks Kafka, serves HTTP pages and runs until it is stopped."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NoReturn, TypeVar

import uvloop
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from contracts import logs
from contracts.connection import Connection, read_settings
from contracts.events import MAX_ORDER_BYTES
from contracts.metrics import MetricSpec, counter, gauge
from contracts.preflight import PreflightError, TopicNeed, check_topics
from contracts.topics import Topic
from contracts.validation import InvalidSettingsError
from services.common import traces
from services.common.faust_app import ServiceSettings
from services.common.records import ServiceError
from services.common.service import Service

PREFIX: Final = "tailpack_service_"
HEALTHY = gauge("tailpack_service_healthy", "", "1: the service is healthy; 0: /healthz has the reason")
WRITTEN = counter("tailpack_service_written_total", "records", "Records written (each effect once)")
DUPLICATES = counter("tailpack_service_duplicates_dropped_total", "records", "Repeated records that were dropped")
REFUSED = counter("tailpack_service_refused_total", "records", "Records refused and written as dead letters")
FENCED = counter(
    "tailpack_service_fenced_total", "records", "Payments dropped because their replica had lost its partition"
)
UNACKNOWLEDGED = gauge("tailpack_service_unacknowledged", "records", "Records whose outputs are not yet acknowledged")
OLDEST = gauge(
    "tailpack_service_oldest_unacknowledged_seconds", "seconds", "Age of the oldest unacknowledged record; 0: none"
)

LABELS = ("service",)

S = TypeVar("S", bound=ServiceSettings)
Build = Callable[[Connection, S], Service]

START_DEADLINE_S: Final = 120.0
"""Time limit for joining the group and reading back the output, after the broker has answered."""
STOP_DEADLINE_S: Final = 10.0
"""Time limit for sending effects, committing and leaving. If the broker is down, these fail, but nothing is lost."""
CHECK_INTERVAL_S: Final = 0.2
"""Faust sets its crash flag from another thread and wakes no task, so the flag is polled."""


def main(name: str, environ: Mapping[str, str], kind: type[S], build: Build[S]) -> NoReturn:
    """Run the service until SIGTERM or SIGINT, then exit. Exit status: 0 stopped, 1 failed, 2 bad settings."""
    log = logging.getLogger(name)
    try:
        logs.configure(name, environ)
        connection, settings = read_settings(environ, kind)
        traces.configure(name, environ)
    except InvalidSettingsError as error:
        for problem in error.problems:
            log.error(problem)
        sys.exit(2)
    code = 0
    try:
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # the thread of Faust's consumer has its own loop
        # Not asyncio.run: it waits for all tasks, and some of Faust's never end while the broker is down.
        asyncio.new_event_loop().run_until_complete(_run(connection, settings, build))
    except (ServiceError, PreflightError) as error:
        log.error(error)
        code = 1
    except Exception as error:  # the supervisor restarts the process
        log.exception(f"Stopped by {type(error).__name__}: {error}")
        code = 1
    traces.stop()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # as above: everything was stopped within its deadline, except tasks that never end


async def _run(connection: Connection, settings: S, build: Build[S]) -> None:
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_requested.set)
    running = asyncio.create_task(_run_service(connection, settings, build, stop_requested))
    stopping = asyncio.create_task(stop_requested.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not running.done():
        await asyncio.wait({running}, timeout=STOP_DEADLINE_S + 1.0)
    if running.done():
        running.result()


async def _run_service(connection: Connection, settings: S, build: Build[S], stop_requested: asyncio.Event) -> None:
    service = build(connection, settings)
    http = await serve_http(service, settings)
    try:
        scaled = service.topic_name(Topic.PAYMENTS_REQUESTED)
        needed = {name: TopicNeed(count, may_grow=name == scaled) for name, count in service.topics.items()}
        await asyncio.to_thread(check_topics, connection, needed, settings.broker_deadline_s, stop_requested.is_set)
        if stop_requested.is_set():
            return
        try:
            await _start_and_watch(service, stop_requested)
        finally:
            # Not wait_for: after its deadline it waits for the cancelled task, and a task of Faust may never end.
            await asyncio.wait({asyncio.create_task(service.stop())}, timeout=STOP_DEADLINE_S)
    finally:
        if http is not None:
            await http.cleanup()


async def _start_and_watch(service: Service, stop_requested: asyncio.Event) -> None:
    starting = asyncio.create_task(service.start())
    deadline = asyncio.get_running_loop().time() + START_DEADLINE_S
    while not stop_requested.is_set():
        if problem := service.failure_reason():
            raise ServiceError(problem)
        if starting.done():
            starting.result()
        elif asyncio.get_running_loop().time() > deadline:
            raise ServiceError(f"not ready within {START_DEADLINE_S:.0f} s ({service.unhealthy_reason()}); restart it")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CHECK_INTERVAL_S):
                await stop_requested.wait()
    if not starting.done():
        starting.cancel()


async def serve_http(service: Service, settings: ServiceSettings) -> web.AppRunner | None:
    """Listen on the configured port. Return None without a port. Raises ServiceError if the port is not available."""
    if not settings.http_port:
        return None

    async def healthz(_: web.Request) -> web.Response:
        problem = service.unhealthy_reason()
        counts = {metric.name.removeprefix(PREFIX).removesuffix("_total"): n for metric, n in _counts(service).items()}
        past = {"read_back": service.records_read_back, "passed_over": service.records_skipped}
        body = {"service": service.name, "status": problem or "consuming", **counts, **past}
        return web.json_response(body, status=503 if problem else 200)

    async def livez(_: web.Request) -> web.Response:
        return web.json_response({"alive": True})  # the event loop runs; a service that cannot go on exits by itself

    registry = CollectorRegistry()
    registry.register(_Collector(service))

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application(client_max_size=MAX_ORDER_BYTES)
    pages = {"/healthz": healthz, "/livez": livez, "/metrics": metrics}
    application.add_routes([*(web.get(path, page) for path, page in pages.items()), *service.routes])
    runner = web.AppRunner(application, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.http_host, settings.http_port).start()
    except OSError as error:
        await runner.cleanup()
        raise ServiceError(
            f"cannot listen on {settings.http_host}:{settings.http_port} ({error.strerror}); "
            "free the port or set another TAILPACK_HTTP_PORT"
        ) from error
    return runner


def _counts(service: Service) -> dict[MetricSpec, int]:
    stage = service.stage
    return {
        WRITTEN: stage.records_written,
        DUPLICATES: stage.duplicates_dropped,
        REFUSED: stage.records_refused,
        FENCED: service.fence.refused if service.fence else 0,
        UNACKNOWLEDGED: stage.acknowledgements.count,
    }


class _Collector:
    """A prometheus-client collector of the metrics of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        service = self._service
        values = {HEALTHY: service.unhealthy_reason() is None, OLDEST: service.stage.acknowledgements.oldest_s()}
        for declared, value in (values | _counts(service)).items():
            yield declared.of(value, {LABELS[0]: service.name})
