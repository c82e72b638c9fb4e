"""`python -m services.shipment.replica`: one replica of a Shipment group that follows plans; rules as on Faust."""

import sys
from typing import Final

from contracts.connection import Connection
from contracts.events import PaymentSettled
from contracts.topics import Group, Topic
from services.payment.replica import ReplicaSettings
from services.plan_stage import PlanStage, decoded, main
from services.shipment.domain import schedule

RULES: Final = {Topic.PAYMENTS_SETTLED: decoded(PaymentSettled, schedule)}


def shipment(settings: ReplicaSettings, connection: Connection) -> PlanStage:
    """Return a Shipment replica. Raises InvalidSettingsError where it is told no payments to read."""
    return PlanStage(Group.SHIPMENT, RULES, Topic.SHIPMENTS_SCHEDULED, settings, connection)


if __name__ == "__main__":
    sys.exit(main(shipment, "shipment"))
