"""`python -m services.comparators`: one Payment replica under TAILPACK_RUNTIME, until SIGTERM or SIGINT."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Final

from confluent_kafka import KafkaException

from contracts.connection import Connection, read_settings
from contracts.delivery import Delivery
from contracts.validation import InvalidSettingsError
from services.common import logs
from services.common.errors import ServiceError
from services.comparators import preflight
from services.comparators.settings import runtime_of
from services.comparators.stop import Stop
from services.payment.settings import ReplicaSettings

Run = Callable[[ReplicaSettings, Connection, Stop], None]

MODULES: Final = {
    Delivery.COOPERATIVE_STICKY: "cooperative_sticky",
    Delivery.KIP848: "kip848",
    Delivery.SHARE: "share",
    Delivery.FAUST: "faust_worker",
}
"""Imported when chosen: Faust alone takes half a second, which the others shall not spend at each start."""


def main() -> int:
    """Return the exit status: 0 stopped as asked, 1 could not go on, 2 bad settings."""
    stop = Stop().listen()
    problems: list[str] = []
    try:
        runtime = runtime_of(os.environ)
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    try:
        connection, settings = read_settings(os.environ, ReplicaSettings)
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    if problems:
        sys.stderr.write("".join(f"{problem}\n" for problem in problems))
        return 2
    logs.configure()
    try:
        preflight.check(connection, settings.payment_partitions, stop)
        if not stop.requested:
            run: Run = import_module(f"services.comparators.{MODULES[runtime]}").run
            run(settings, connection, stop)
    except ServiceError as ended:
        sys.stderr.write(f"{settings.replica}: {ended}\n")
        return 1
    except KafkaException as refused:
        sys.stderr.write(f"{settings.replica}: {runtime} cannot run here ({refused.args[0].str()})\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
