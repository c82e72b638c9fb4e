"""`python -m services.payment`: one Payment replica, until SIGTERM or SIGINT."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable

from contracts import logs
from contracts.connection import Connection, read_settings
from contracts.events import PaymentSettled
from contracts.topics import Group, Topic
from contracts.validation import InvalidSettingsError
from services.common import traces
from services.consumer import ReplicaError
from services.payment.domain import settled_payment
from services.payment.replica import ReplicaSettings
from services.plan_stage import PlanStage


def payment_stage(settings: ReplicaSettings, connection: Connection) -> PlanStage:
    """Return one replica of the Payment group. Raises InvalidSettingsError: it is configured to read another topic."""
    rules = {Topic.PAYMENTS_REQUESTED: settled_payment}
    return PlanStage(Group.PAYMENT, rules, Topic.PAYMENTS_SETTLED, settings, connection, latency_of=latency_s)


def latency_s(settled: PaymentSettled) -> float:
    """Return the time from the moment the event was intended to be sent until it was done, seconds."""
    return ((settled.timeline.done_us or 0) - settled.timeline.intended_us) / 1e6


def main(make: Callable[[ReplicaSettings, Connection], PlanStage], stage: str) -> int:
    """Run a replica; return the exit status: 0 stopped as asked, 1 could not go on, 2 bad settings."""
    name = os.environ.get("TAILPACK_REPLICA") or stage
    log = logging.getLogger(name)
    try:
        logs.configure(name, os.environ)
        connection, settings = read_settings(os.environ, ReplicaSettings)
        traces.configure(name, os.environ)
        replica = make(settings, connection).consumer
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
    sys.exit(main(payment_stage, "payment"))
