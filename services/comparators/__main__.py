"""`python -m services.comparators`: one Payment replica under TAILPACK_RUNTIME, until SIGTERM or SIGINT."""

import logging
import os
import signal
import sys
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaException

from contracts import logs
from contracts.connection import Connection, read_settings
from contracts.delivery import RUNTIMES, Delivery
from contracts.preflight import Needed, NotThereError, check_topics
from contracts.settings import Rule, Values
from contracts.topics import Topic, qualified
from contracts.validation import InvalidSettingsError
from services.common.records import ServiceError
from services.comparators.client import Client
from services.payment.replica import ReplicaSettings

START_DEADLINE_S: Final = 30.0
"""A broker that is being restarted is back within it; one that is not there is reported after it."""
NEEDED: Final = (Topic.PAYMENTS_SETTLED, Topic.DEAD_LETTERS, Topic.PROGRESS)


@dataclass(frozen=True, kw_only=True)
class ComparatorSettings(ReplicaSettings):
    """As for `services.payment`, and TAILPACK_RUNTIME."""

    runtime: Delivery
    """The rebalance protocol of the group."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return the base's rules and: the runtime is not our own consumer."""
        return (*super().rules(), ("runtime", _another_runtime))


def main() -> int:
    """Return the exit status: 0 stopped as asked, 1 could not go on, 2 bad settings."""
    signals: list[int] = []  # what is under way when one arrives is finished first
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signals.append(received))
    name = os.environ.get("TAILPACK_REPLICA") or "payment"
    log = logging.getLogger(name)
    try:
        logs.configure(name, os.environ)
        connection, settings = read_settings(os.environ, ComparatorSettings)
    except InvalidSettingsError as wrong:
        for problem in wrong.problems:
            log.error(problem)
        return 2
    try:
        check_topics(connection, _needed(connection, settings), START_DEADLINE_S, lambda: bool(signals))
        if not signals:
            Client(settings, connection, settings.runtime).run(lambda: bool(signals))
    except (ServiceError, NotThereError) as ended:
        log.error(ended)
        return 1
    except KafkaException as refused:
        log.error(f"{settings.runtime} cannot run here ({refused.args[0].str()})")
        return 1
    return 0


def _needed(connection: Connection, settings: ReplicaSettings) -> dict[str, Needed]:
    topics = dict.fromkeys(NEEDED, 0) | {Topic.PAYMENTS_REQUESTED: settings.payment_partitions}
    return {qualified(connection.namespace, topic): Needed(count) for topic, count in topics.items()}


def _another_runtime(values: Values) -> str | None:
    known = ", ".join(RUNTIMES)
    return None if values["runtime"] in RUNTIMES else f"must be one of {known}"


if __name__ == "__main__":
    sys.exit(main())
