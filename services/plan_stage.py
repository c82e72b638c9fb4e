"""A stage behind Payment as a group that is scaled as Payment is, by plans.

It remembers nothing: a record that is repeated gives the same output again, under the same id; with
`guarantee = exactly_once` in every group none is. Its control topics are those of a namespace of its own; what it
writes lies beside what it reads.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from contracts.connection import Connection
from contracts.topics import Group, Topic
from contracts.validation import InvalidSettingsError
from services.common.records import Refusal, decoder, encode
from services.consumer import Event, PlanConsumer, Refused
from services.consumer.environment import topics_of
from services.payment.pace import Server, ServiceTimes
from services.payment.settings import ReplicaSettings, options_of


class Written(Protocol):
    """What a stage writes: a record of an order."""

    @property
    def order_id(self) -> str:
        """Its key."""
        ...


class Rule(NamedTuple):
    """What records of a topic are, and what follows from one that was served at a moment (epoch µs), if anything."""

    kind: type[msgspec.Struct]
    decide: Callable[[Any, int], Written | None]


class PlanStage:
    """One replica. rules: by the topic that it may be told to read, the namespace left out; writes: likewise.

    Raises InvalidSettingsError where it is told to read another.
    """

    def __init__(
        self,
        stage: Group,
        rules: Mapping[Topic, Rule],
        writes: Topic,
        settings: ReplicaSettings,
        connection: Connection,
    ) -> None:
        read = settings.topic_in(connection.namespace)
        topic = next((one for one in rules if f".{read}".endswith(f".{one}")), None)
        if topic is None:
            raise InvalidSettingsError([f"TAILPACK_TOPIC = {read!r}: must be a topic {' or '.join(rules)}"])
        beside = read.removesuffix(topic)
        kind, self._decide = rules[topic]
        self._decode = decoder(kind)
        self._target = beside + writes
        self._server = Server(ServiceTimes(settings))
        self.consumer = PlanConsumer(
            settings.replica,
            connection,
            topics_of(
                connection,
                settings,
                dead_letters=beside + Topic.DEAD_LETTERS,
                stage=stage,
                others={read: 1, self._target: 1},
            ),
            self.handle,
            options=options_of(settings),
            busy_s=lambda: self._server.busy_s,
        )

    async def handle(self, event: Event) -> "asyncio.Future[None] | None":
        """Serve one record: it takes its service time, and what follows from it is written."""
        done_us = await self._server.serve(event.received_us, event.key)
        made = self.outcome(event.value, done_us)
        if made is None:
            return None
        return await self.consumer.send(self._target, made.order_id.encode(), encode(made))

    def outcome(self, value: bytes | None, done_us: int) -> Written | None:
        """Return what follows from a record that was served at `done_us`. Raises Refused: it cannot be read."""
        record = self._decode(value)
        if isinstance(record, Refusal):
            raise Refused(*record.reasons)
        return self._decide(record, done_us)
