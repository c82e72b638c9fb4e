"""`python -m services.comparators`: run one Payment replica with TAILPACK_RUNTIME until SIGTERM or SIGINT."""

import signal
import sys
from dataclasses import dataclass
from typing import ClassVar, Final

from confluent_kafka import KafkaException

from contracts.connection import Connection
from contracts.preflight import PreflightError, TopicNeed, check_topics
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol
from contracts.settings import Rules, Values
from contracts.topics import Topic, qualified
from services.common.records import ServiceError
from services.comparators.client import Client
from services.payment.replica import ReplicaSettings
from services.plan_stage import run_replica

START_DEADLINE_S: Final = 30.0
"""Longest wait for the broker: a restart takes less. After it a missing broker is an error."""
NEEDED: Final = dict.fromkeys((Topic.PAYMENTS_SETTLED, Topic.DEAD_LETTERS, Topic.PROGRESS), 0)


def _unknown_runtime(values: Values) -> str | None:
    return None if values["runtime"] in RUNTIMES else f"must be one of {', '.join(RUNTIMES)}"


@dataclass(frozen=True, kw_only=True)
class ComparatorSettings(ReplicaSettings):
    """As for `services.payment`, and TAILPACK_RUNTIME."""

    runtime: RebalanceProtocol
    """The rebalance protocol of the group."""

    RULES: ClassVar[Rules] = (("runtime", _unknown_runtime),)


def run(settings: ComparatorSettings, connection: Connection) -> None:
    """Serve until a signal arrives; the event being served is finished first. Raises ServiceError."""
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signals.append(received))
    topics = NEEDED | {Topic.PAYMENTS_REQUESTED: settings.payment_partitions}
    needed = {qualified(connection.namespace, topic): TopicNeed(count) for topic, count in topics.items()}
    try:
        check_topics(connection, needed, START_DEADLINE_S, lambda: bool(signals))
        if not signals:
            Client(settings, connection, settings.runtime).run(lambda: bool(signals))
    except PreflightError as error:
        raise ServiceError(str(error)) from error
    except KafkaException as error:
        raise ServiceError(f"{settings.runtime} cannot run here ({error.args[0].str()})") from error


if __name__ == "__main__":
    sys.exit(run_replica(ComparatorSettings, run, "payment"))
