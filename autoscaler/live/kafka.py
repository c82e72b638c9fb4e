"""The autoscaler's Kafka clients: the settings they share, and the check before it takes a group over.

The check comes before anything is written, so an autoscaler that cannot run neither fences the one that runs nor has a
broker create topics.
"""

import logging
from collections.abc import Iterable
from typing import Any, Final

from confluent_kafka import Consumer, ConsumerGroupType, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from contracts.connection import Connection
from contracts.plan import ASSIGNOR
from contracts.topics import CONTROL, ScaledGroup, qualified
from contracts.waiting import NotWithinError, until

DEADLINE_S: Final = 10.0
"""For brokers that are just starting, and for topics that were created a moment ago."""
ASK_S: Final = 2.0
PAUSE_S: Final = 0.2
_log = logging.getLogger("autoscaler.librdkafka")
_log.addHandler(logging.NullHandler())
_log.propagate = False


def client(connection: Connection, **settings: Any) -> dict[str, Any]:
    """Return the connection's configuration with `settings` (property names with _ for .).

    librdkafka's own log goes to the logger "autoscaler.librdkafka", silent without a handler: what matters arrives as
    an error of a call, and is logged once, in our words.
    """
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return connection.librdkafka() | {"logger": _log} | named


def reader(connection: Connection, **settings: Any) -> dict[str, Any]:
    """Return a configuration for reading single partitions without joining a group."""
    unused_group = qualified(connection.namespace, "autoscaler.reader")  # librdkafka demands a name
    return client(
        connection,
        group_id=unused_group,
        enable_auto_commit=False,
        enable_partition_eof=True,
        auto_offset_reset="earliest",
        **settings,
    )


class NotThereError(Exception):
    """Something that the autoscaler needs is missing; one sentence that says what to do."""


def check(connection: Connection, scaled: ScaledGroup, *, follows_plans: bool, deadline_s: float = DEADLINE_S) -> None:
    """Return when Kafka and the topics are there, within `deadline_s`. Raises NotThereError.

    follows_plans: a group of other members than PlanConsumers is refused.
    """
    topic, group = scaled.topic_in(connection.namespace), scaled.group_in(connection.namespace)
    control = [qualified(connection.namespace, one) for one in CONTROL]
    errors: list[KafkaError] = []
    missing: list[str] = []
    consumer = Consumer(reader(connection) | {"error_cb": errors.append})

    def there() -> bool:
        missing[:] = filter(None, [_missing(consumer, connection, topic, control, errors)])
        return not missing

    try:
        until(there, deadline_s, "Kafka and the topics", PAUSE_S)
    except NotWithinError:
        raise NotThereError(missing[0]) from None
    finally:
        consumer.close()
    if follows_plans:
        _check_group(connection, group)


def _missing(
    consumer: Consumer, connection: Connection, topic: str, control: Iterable[str], errors: list[KafkaError]
) -> str:
    where = connection.bootstrap_servers
    for name in (topic, *control):
        try:
            error = consumer.list_topics(name, timeout=ASK_S).topics[name].error
        except KafkaException as away:
            telling = [one for one in errors if one.code() != KafkaError._ALL_BROKERS_DOWN] or [away.args[0]]
            return (
                f"Kafka at {where} cannot be reached ({telling[-1].str()}); start it, or correct bootstrap_servers and "
                "client_properties"
            )
        if error is not None:
            create = "create it, or correct topic" if name == topic else "create it with tailpack topics create"
            return f"topic {name} cannot be used on {where} ({error.str()}); {create}"
    return ""


def _check_group(connection: Connection, group: str) -> None:
    """Refuse a group whose members place their partitions themselves; without the right to ask, accept it."""
    admin = AdminClient(client(connection))
    try:
        found = admin.describe_consumer_groups([group], request_timeout=ASK_S)[group].result(2 * ASK_S)
    except (KafkaException, TimeoutError):
        return
    other = "consumer" if found.type is ConsumerGroupType.CONSUMER else found.partition_assignor
    if found.members and other not in ("", ASSIGNOR):  # empty while the group rebalances
        raise NotThereError(
            f"the group {group} follows no plans: its {len(found.members)} members are plain Kafka clients "
            f"(assignor {other}); stop them and start the consumer of docs/own-service.md, or name another group"
        )
