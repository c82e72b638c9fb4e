"""Puts a service together from its parts."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from contracts.connection import Connection
from contracts.topics import Group, Topic, partitions_of, qualified
from services.common.app import make_app, sender
from services.common.history import IdOf
from services.common.service import Service
from services.common.settings import ServiceSettings
from services.common.stage import Stage


class _Letter(msgspec.Struct):
    letter_id: str
    stage: str


def assemble(
    stage: str,
    connection: Connection,
    group: Group,
    settings: ServiceSettings,
    *,
    inputs: Iterable[Topic],
    outputs: Mapping[Topic, IdOf],
    payment_partitions: int = 0,
    **app_options: Any,
) -> Service:
    """Return a service without agents.

    outputs: topics this stage writes, each with the function that finds the id of an effect in a record's value.
    payment_partitions: of payments.requested; needed by a stage that reads or writes it.
    """

    def name(topic: Topic) -> str:
        return qualified(connection.namespace, topic)

    app = make_app(connection, group, settings, **app_options)
    used = {*inputs, *outputs, Topic.DEAD_LETTERS}
    return Service(
        name=stage,
        connection=connection,
        app=app,
        stage=Stage(stage, name(Topic.DEAD_LETTERS), sender(app)),
        topics={name(topic): partitions_of(topic, payment_partitions) for topic in used},
        inputs=frozenset(map(name, inputs)),
        outputs={**{name(topic): found for topic, found in outputs.items()}, name(Topic.DEAD_LETTERS): _letters(stage)},
    )


def _letters(stage: str) -> IdOf:
    """Return the function that finds the ids of `stage`'s own among all dead letters."""
    decode = msgspec.json.Decoder(_Letter).decode

    def identity(value: bytes) -> str | None:
        letter = decode(value)
        return letter.letter_id if letter.stage == stage else None

    return identity
