"""Creates a consumer from environment variables, as the autoscaler sets them for its replicas."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from contracts.connection import Connection, read_settings
from contracts.fields import NAME, NAME_RULE
from contracts.settings import Rules, must, shared_fields
from contracts.topics import ScaledGroup, Topic, qualified
from services.consumer.interface import Options, Topics
from services.consumer.plan_consumer import PlanConsumer


@dataclass(frozen=True, kw_only=True)
class ConsumerSettings(Options, ScaledGroup):
    """Settings from TAILPACK_REPLICA, TAILPACK_TOPIC, TAILPACK_GROUP and so on, and the consumer's options."""

    replica: str
    """Name in plans, such as payment-0. Of two processes with one name the later one owns the partitions."""

    RULES: ClassVar[Rules] = (must("replica", lambda of: NAME.fullmatch(of["replica"]), NAME_RULE),)


def topics_of(connection: Connection, scaled: ScaledGroup, **more: Any) -> Topics:
    """Return the topics of a scaled group. more: further fields of Topics."""
    namespace = connection.namespace
    return Topics(
        group=scaled.group_in(namespace),
        events=scaled.topic_in(namespace),
        plans=qualified(namespace, Topic.PLANS),
        progress=qualified(namespace, Topic.PROGRESS),
        **more,
    )


def from_environment(handle: Any = None, *, environ: Mapping[str, str] | None = None, **more: Any) -> PlanConsumer:
    """Return a consumer configured by TAILPACK_… variables.

    more: further arguments of PlanConsumer, such as handle_batch or listeners, and `dead_letters`, a topic's name.
    Raises InvalidSettingsError naming every variable that is wrong.
    """
    connection, settings = read_settings(os.environ if environ is None else environ, ConsumerSettings)
    topics = topics_of(connection, settings, dead_letters=more.pop("dead_letters", ""))
    options = Options(**shared_fields(settings, Options))
    return PlanConsumer(settings.replica, connection, topics, handle, options=options, **more)
