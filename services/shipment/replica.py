"""`python -m services.shipment.replica`: a replica of a Shipment group that follows plans; rules as on Faust."""

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
