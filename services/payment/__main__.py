"""`python -m services.payment`: run one Payment replica until SIGTERM or SIGINT."""

import sys

from contracts.connection import Connection
from contracts.events import PaymentSettled
from contracts.topics import Group, Topic
from services.payment.domain import settled_payment
from services.payment.replica import ReplicaSettings
from services.plan_stage import PlanStage, main


def payment_stage(settings: ReplicaSettings, connection: Connection) -> PlanStage:
    """Return a replica of the Payment group. Raises InvalidSettingsError if it is configured to read another topic."""
    rules = {Topic.PAYMENTS_REQUESTED: settled_payment}
    return PlanStage(Group.PAYMENT, rules, Topic.PAYMENTS_SETTLED, settings, connection, latency_of=latency_s)


def latency_s(settled: PaymentSettled) -> float:
    """Return the time from the intended send time of the event to the end of its service, seconds."""
    return ((settled.timeline.done_us or 0) - settled.timeline.intended_us) / 1e6


if __name__ == "__main__":
    sys.exit(main(payment_stage, "payment"))
