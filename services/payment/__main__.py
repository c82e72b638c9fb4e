"""`python -m services.payment`: one Payment replica, until SIGTERM or SIGINT."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable

from contracts import logs
from contracts.connection import Connection, read_settings
from contracts.validation import InvalidSettingsError
from services.common import traces
from services.consumer import PlanConsumer, ReplicaError
from services.payment.app import PaymentService
from services.payment.settings import ReplicaSettings


def payment(settings: ReplicaSettings, connection: Connection) -> PlanConsumer:
    """Return the consumer of a Payment replica."""
    return PaymentService(settings, connection).consumer


def main(make: Callable[[ReplicaSettings, Connection], PlanConsumer], stage: str) -> int:
    """Run a replica; return the exit status: 0 stopped as asked, 1 could not go on, 2 bad settings."""
    name = os.environ.get("TAILPACK_REPLICA") or stage
    log = logging.getLogger(name)
    try:
        logs.configure(name, os.environ)
        connection, settings = read_settings(os.environ, ReplicaSettings)
        traces.configure(name, os.environ)
        replica = make(settings, connection)
    except InvalidSettingsError as wrong:
        for problem in wrong.problems:
            log.error(problem)
        return 2
    try:
        asyncio.run(replica.run())
    except ReplicaError as ended:
        log.error(ended)
        return 1
    finally:
        traces.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(payment, "payment"))
