"""The Faust app factory and the adapter between Faust's streams and a Stage. Called, never at import."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import faust
from mode.supervisors import CrashingSupervisor

from contracts.connection import Connection
from contracts.topics import AUTO_OFFSET_RESET, Group, qualified
from services.common.driver import KafkaTransport, PromptTableManager, RawSchema
from services.common.records import Effect, Incoming
from services.common.security import faust_options
from services.common.settings import ServiceSettings
from services.common.stage import Decide, Stage

SESSION_S: Final = 6.0
HEARTBEAT_S: Final = 1.0
PRODUCER_TIMEOUT_S: Final = 60.0
"""How long a record may wait for the broker. A killed broker recovers its logs for tens of seconds."""
LINGER_S: Final = 0.002


def make_app(connection: Connection, group: Group, settings: ServiceSettings, **tables: Any) -> faust.App:
    """Return an app for `group` that is configured, not started. `tables`: options for apps that keep tables."""
    name = qualified(connection.namespace, group)
    folder = Path(settings.data_dir) / f"{name}-{settings.instance}"
    folder.mkdir(parents=True, exist_ok=True)
    app = faust.App(
        name,
        **faust_options(connection),
        store="memory://",
        datadir=folder,
        autodiscover=False,
        web_enabled=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset=AUTO_OFFSET_RESET,
        # A static member: after a crash its successor takes over at once, not after the session time-out.
        consumer_group_instance_id=f"{name}-{settings.instance}",
        broker_session_timeout=SESSION_S,
        broker_heartbeat_interval=HEARTBEAT_S,
        broker_rebalance_timeout=15.0,
        broker_request_timeout=15.0,
        broker_commit_interval=settings.commit_interval_s,
        producer_acks=-1,
        producer_linger=LINGER_S,
        producer_request_timeout=PRODUCER_TIMEOUT_S,
        stream_wait_empty=False,  # the stage drains itself, with a deadline
        agent_supervisor=CrashingSupervisor,  # a restarted agent would go on without the record it failed on
        TableManager=PromptTableManager,
        **tables,
    )
    app.finalize()
    app.transport = KafkaTransport(app.conf.broker_consumer, app)
    app.producer_transport = KafkaTransport(app.conf.broker_producer, app)
    return app


def incoming(message: Any) -> Incoming:
    """Return Faust's message as a plain record."""
    headers: Mapping[str, bytes] = dict(message.headers or ())
    stamp_us = round((message.timestamp or 0.0) * 1e3) * 1000
    return Incoming(message.topic, message.partition, message.offset, stamp_us, message.key, message.value, headers)


def sender(app: faust.App) -> Any:
    """Return the function by which a stage writes: straight to the producer, past Faust's topics and serialisers."""

    async def send(effect: Effect) -> "asyncio.Future[Any]":
        sent: asyncio.Future[Any] = await app.producer.send(
            effect.topic, effect.key, effect.value, effect.partition, None, None
        )
        return sent

    return send


def consume(app: faust.App, topic: str, stage: Stage, decide: Decide) -> Any:
    """Add the agent that feeds `topic` to `stage`. Returns the agent."""
    source = app.topic(topic, schema=RawSchema(allow_empty=True))

    async def agent(stream: Any) -> None:
        async for event in _events(stream):
            await stage.may_run.wait()
            message = event.message
            if message.generation_id == app.consumer_generation_id:  # else it was revoked, and is read again
                await stage.take(incoming(message), decide, event.ack)

    return app.agent(source, name=f"{app.conf.id}-{topic}")(agent)


def _events(stream: Any) -> AsyncIterator[Any]:
    events: AsyncIterator[Any] = stream.noack().events()
    return events
