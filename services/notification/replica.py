"""`python -m services.notification.replica`: a replica of a Notification group that follows plans.

It has the rules of the service on Faust. A group reads one topic. The scaled group reads shipments. Messages for
declined payments need a second group that reads payments. One replica without a plan is enough for that group.
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
