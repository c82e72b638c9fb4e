"""Checks that Kafka answers and has the topics, before a process starts to work. They write no record."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException

from contracts.connection import Connection
from contracts.waiting import WaitTimeoutError, until

ANSWER_S: Final = 2.0

_log = logging.getLogger("contracts.librdkafka")
_log.addHandler(logging.NullHandler())
_log.propagate = False  # calls return each error that matters


class PreflightError(Exception):
    """Something that a process needs is missing. The message is one sentence with the remedy."""


class TopicNeed(NamedTuple):
    """A topic that a process needs, with its number of partitions (0: any). may_grow: more partitions are accepted.

    remedy: what to do if the topic is missing or has another number of partitions.
    """

    partitions: int = 0
    may_grow: bool = False
    remedy: str = "create the run's topics first, or correct TAILPACK_NAMESPACE and the number of partitions"


def check_topics(
    connection: Connection, needed: Mapping[str, TopicNeed], within_s: float, stopped: Callable[[], object] = bool
) -> None:
    """Wait until every topic exists as needed or `stopped` is set. Raises PreflightError after `within_s` seconds."""
    errors: list[KafkaError] = []
    consumer = Consumer(client_config(connection, group_id="tailpack.preflight") | {"error_cb": errors.append})
    problems: list[str] = []

    def is_done() -> bool:
        problems.append("" if stopped() else _problem(consumer, connection.bootstrap_servers, needed, errors))
        return not problems[-1]

    try:
        until(is_done, within_s, "Kafka and its topics", 0.2)
    except WaitTimeoutError:
        raise PreflightError(problems[-1]) from None
    finally:
        consumer.close()


def client_config(connection: Connection, **settings: Any) -> dict[str, Any]:
    """Return the configuration of a client that logs nothing, unless a handler is added to "contracts.librdkafka".

    settings: properties of librdkafka, with _ in place of each dot.
    """
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return connection.librdkafka() | {"logger": _log} | named


def _problem(consumer: Consumer, where: str, needed: Mapping[str, TopicNeed], errors: list[KafkaError]) -> str:
    for name, need in needed.items():
        try:
            found = consumer.list_topics(name, timeout=ANSWER_S).topics[name]
        except KafkaException as away:
            known = [error for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN] or [away.args[0]]
            remedy = "start it, or correct bootstrap_servers and client_properties"
            return f"Kafka at {where} cannot be reached ({known[-1].str()}); {remedy}"
        if found.error is not None:
            return f"topic {name} cannot be used on {where} ({found.error.str()}); {need.remedy}"
        count = len(found.partitions)
        if need.partitions not in (0, count) and not (need.may_grow and count > need.partitions):
            return f"topic {name} on {where} has {count} partitions, not {need.partitions}; {need.remedy}"
    return ""
