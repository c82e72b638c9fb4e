"""Runtime `faust`: a stock Faust worker, with the settings its documentation offers for low latency."""

import asyncio
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import faust
import msgspec

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.delivery import Delivery
from contracts.progress import PROGRESS_INTERVAL_S
from contracts.topics import Group, Topic, qualified
from services.common.faust_app import RawSchema, faust_options, use_our_transport
from services.common.records import ServiceError
from services.comparators.replica import NO_PLAN, SIGNALS, Replica, Stop
from services.consumer import Event
from services.payment.settings import ReplicaSettings

STOP_DEADLINE_S: Final = 10.0
"""Waiting for the event in flight, committing, leaving."""


def run(settings: ReplicaSettings, connection: Connection, stop: Stop, runtime: Delivery) -> None:
    """Serve as one member of the group until asked to stop. Raises ServiceError when Faust crashes."""
    with tempfile.TemporaryDirectory(prefix="tailpack-faust-") as folder:
        # Not asyncio.run: it waits for every task to end, and some of Faust's never do while the broker is away.
        loop = asyncio.new_event_loop()
        stopped = loop.run_until_complete(FaustReplica(settings, connection, Path(folder)).run(stop))
    if not stopped:
        log = logging.getLogger(settings.replica)
        log.error("left without an answer from Kafka; what was not committed is repeated")
        os._exit(0)  # for the same reason, with Faust's threads


def make_app(settings: ReplicaSettings, connection: Connection, folder: Path) -> faust.App:
    """Return the app, not started. `folder`: where Faust may write; nothing in it needs to survive."""
    app = faust.App(
        qualified(connection.namespace, Group.PAYMENT),
        **faust_options(connection),
        datadir=folder,
        broker_heartbeat_interval=settings.heartbeat_s,
        broker_session_timeout=settings.session_s,
        broker_rebalance_timeout=settings.rebalance_timeout_s,
        broker_request_timeout=max(15.0, 2 * settings.session_s),
        broker_commit_interval=settings.commit_interval_s,
        producer_linger=0.0,
    )
    use_our_transport(app)  # fetches of 50 ms, as in all other runtimes
    return app


class FaustReplica:
    """One worker: an agent without concurrency is a server of one event at a time."""

    def __init__(self, settings: ReplicaSettings, connection: Connection, folder: Path) -> None:
        self._namespace = connection.namespace
        self._replica = Replica(settings)
        self._app = make_app(settings, connection, folder)
        self._progress = self._topic(Topic.PROGRESS)
        self._outputs = {topic: self._topic(topic) for topic in (Topic.PAYMENTS_SETTLED, Topic.DEAD_LETTERS)}
        self._app.agent(self._topic(Topic.PAYMENTS_REQUESTED), name=self._app.conf.id)(self._pay)
        self._app.on_partitions_assigned.connect(self._on_assigned, weak=False)
        self._app.on_partitions_revoked.connect(self._on_revoked, weak=False)

    def _topic(self, topic: Topic) -> Any:
        return self._app.topic(
            qualified(self._namespace, topic),
            schema=RawSchema(key_serializer="raw", value_serializer="raw", allow_empty=True),
        )

    async def run(self, stop: Stop) -> bool:
        """Serve until asked to stop; return whether the worker left within its deadline. Raises ServiceError."""
        told = asyncio.Event()
        for number in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, told.set)
        if stop.requested:
            return True
        starting = asyncio.ensure_future(self._app.start())
        try:
            await self._report_until(told, starting)
        finally:
            stopping = asyncio.ensure_future(self._end(starting))
            await asyncio.wait({stopping}, timeout=STOP_DEADLINE_S)  # not wait_for: it waits for what it cancels
        return stopping.done()

    async def _report_until(self, told: asyncio.Event, starting: "asyncio.Future[Any]") -> None:
        while not told.is_set():
            if self._app.crashed:
                reason = self._app.crash_reason
                raise ServiceError(f"Faust crashed ({type(reason).__name__}: {reason}); restart me")
            if starting.done():
                starting.result()
                await self._report()
            await asyncio.wait({asyncio.ensure_future(told.wait())}, timeout=PROGRESS_INTERVAL_S)

    async def _end(self, starting: "asyncio.Future[Any]") -> None:
        if not starting.done():
            starting.cancel()
        elif not self._app.crashed:
            self._replica.stopping = True
            await self._report()
        await self._app.stop()

    async def _report(self) -> None:
        report = self._replica.report()
        await self._progress.send(key=report.replica.encode(), value=msgspec.json.encode(report))

    async def _pay(self, stream: Any) -> None:
        idle = True
        async for event in stream.events():
            record, received_us = event.message, now_us()
            finish_s = self._replica.begin(record.key, idle=idle)
            await asyncio.sleep(max(0.0, finish_s - time.monotonic()))
            payment = Event(
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                key=record.key,
                value=record.value,
                headers=(),
                timestamp_us=round((record.timestamp or 0.0) * 1e6),
                received_us=received_us,
                epoch=NO_PLAN,
            )
            topic, key, value = self._replica.finish(payment)
            written = await self._outputs[topic].send(key=key, value=value)
            await written  # Faust acknowledges the event when the next one is asked for
            idle = stream.channel.empty()

    async def _on_assigned(self, _: Any, taken: Any, **__: Any) -> None:
        self._replica.rebalances += 1
        self._replica.generation = self._app.consumer_generation_id
        self._replica.taken(each.partition for each in taken)

    async def _on_revoked(self, _: Any, revoked: Any, **__: Any) -> None:
        self._replica.given_up(each.partition for each in revoked)
