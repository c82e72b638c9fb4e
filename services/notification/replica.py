"""`python -m services.notification.replica`: one replica of a Notification group that follows plans; rules as on Faust.

A group reads one topic. The one that is scaled reads shipments; told to read payments, a replica tells of the declined
ones, few enough for one that no plan names.
"""

import sys
from functools import partial
from typing import Final

from contracts.events import PaymentSettled, ShipmentScheduled
from contracts.topics import Group, Topic
from services.notification.domain import declined_message, shipped_message
from services.plan_stage import PlanStage, main, typed_rule

RULES: Final = {
    Topic.SHIPMENTS_SCHEDULED: typed_rule(ShipmentScheduled, shipped_message),
    Topic.PAYMENTS_SETTLED: typed_rule(PaymentSettled, declined_message),
}


if __name__ == "__main__":
    sys.exit(main(partial(PlanStage, Group.NOTIFICATION, RULES, Topic.NOTIFICATIONS_SENT), "notification"))
