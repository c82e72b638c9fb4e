"""`python -m services.comparators`: one Payment replica under TAILPACK_RUNTIME, until SIGTERM or SIGINT."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from confluent_kafka import KafkaException

from contracts import logs
from contracts.connection import Connection, read_settings
from contracts.delivery import RUNTIMES, Delivery
from contracts.settings import Rule, Values
from contracts.topics import Topic, qualified
from contracts.validation import InvalidSettingsError
from services.common import preflight
from services.common.records import ServiceError
from services.comparators.replica import Stop
from services.payment.settings import ReplicaSettings

Run = Callable[[ReplicaSettings, Connection, Stop, Delivery], None]

START_DEADLINE_S: Final = 30.0
"""A broker that is being restarted is back within it; one that is not there is reported after it."""
NEEDED: Final = (Topic.PAYMENTS_SETTLED, Topic.DEAD_LETTERS, Topic.PROGRESS)
MODULES: Final = {
    Delivery.COOPERATIVE_STICKY: "group_consumer",
    Delivery.KIP848: "group_consumer",
    Delivery.SHARE: "share",
    Delivery.FAUST: "faust_worker",
}
"""Imported when chosen: Faust alone takes half a second, which the others shall not spend at each start."""


@dataclass(frozen=True, kw_only=True)
class ComparatorSettings(ReplicaSettings):
    """As for `services.payment`, and TAILPACK_RUNTIME."""

    runtime: Delivery
    """Which runtime does the work."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return the base's rules and: the runtime is not our own consumer."""
        return (*super().rules(), ("runtime", _another_runtime))


def main() -> int:
    """Return the exit status: 0 stopped as asked, 1 could not go on, 2 bad settings."""
    stop = Stop()
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
        topics = {qualified(connection.namespace, topic): 0 for topic in NEEDED}
        topics[qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)] = settings.payment_partitions
        asyncio.run(preflight.check(connection, topics, START_DEADLINE_S, lambda: stop.requested))
        if not stop.requested:
            run: Run = import_module(f"services.comparators.{MODULES[settings.runtime]}").run
            run(settings, connection, stop, settings.runtime)
    except ServiceError as ended:
        log.error(ended)
        return 1
    except KafkaException as refused:
        log.error(f"{settings.runtime} cannot run here ({refused.args[0].str()})")
        return 1
    return 0


def _another_runtime(values: Values) -> str | None:
    known = ", ".join(RUNTIMES)
    return None if values["runtime"] in RUNTIMES else f"is our own consumer's; known are {known}"


if __name__ == "__main__":
    sys.exit(main())
