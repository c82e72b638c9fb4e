"""A consumer that is told everything by its environment, as an autoscaler starts replicas."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from contracts.connection import Connection, read_settings
from contracts.settings import Rules, picked
from contracts.topics import ScaledGroup, Topic, qualified
from services.consumer.interface import Options, Topics
from services.consumer.plan_consumer import PlanConsumer


@dataclass(frozen=True, kw_only=True)
class ConsumerSettings(Options, ScaledGroup):
    """Environment: TAILPACK_REPLICA, TAILPACK_TOPIC, TAILPACK_GROUP, … and the consumer's options."""

    replica: str
    """Name in plans, such as payment-0. Of two processes with one name the later one owns the partitions."""

    RULES: ClassVar[Rules] = (("replica", lambda values: None if values["replica"] else "must not be empty"),)


def topics_of(connection: Connection, scaled: ScaledGroup, **more: Any) -> Topics:
    """Return the topics of a scaled group. more: as the fields of Topics."""
    namespace = connection.namespace
    return Topics(
        group=scaled.group_in(namespace),
        events=scaled.topic_in(namespace),
        plans=qualified(namespace, Topic.PLANS),
        progress=qualified(namespace, Topic.PROGRESS),
        **more,
    )


def from_environment(handle: Any = None, *, environ: Mapping[str, str] | None = None, **more: Any) -> PlanConsumer:
    """Return the consumer that TAILPACK_… variables tell of.

    more: as PlanConsumer takes it, such as handle_batch or listeners; and dead_letters, the name of their topic.
    Raises InvalidSettingsError naming every variable that is wrong.
    """
    connection, settings = read_settings(os.environ if environ is None else environ, ConsumerSettings)
    topics = topics_of(connection, settings, dead_letters=more.pop("dead_letters", ""))
    options = Options(**picked(settings, Options))
    return PlanConsumer(settings.replica, connection, topics, handle, options=options, **more)
