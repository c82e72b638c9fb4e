"""`python -m services.shipment.replica`: a Shipment replica that follows plans, with the rules of the service."""

import sys
from functools import partial
from typing import Final

from contracts.events import PaymentSettled
from contracts.topics import Group, Topic
from services.plan_stage import PlanStage, main, typed_rule
from services.shipment.domain import schedule

RULES: Final = {Topic.PAYMENTS_SETTLED: typed_rule(PaymentSettled, schedule)}


if __name__ == "__main__":
    sys.exit(main(partial(PlanStage, Group.SHIPMENT, RULES, Topic.SHIPMENTS_SCHEDULED), "shipment"))
