"""`python -m services.notification`: shipments.scheduled and declined payments.settled → notifications.sent."""

import os
from collections.abc import Iterator

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import NotificationSent, PaymentSettled, ShipmentScheduled
from contracts.topics import Group, Topic
from services.common.faust_app import ServiceSettings
from services.common.fence import Fence, fenced_decision
from services.common.process import main
from services.common.read_back import id_reader
from services.common.records import Effect, encode, typed_decision
from services.common.service import Service
from services.notification.domain import STAGE, declined_message, shipped_message


def build(connection: Connection, settings: ServiceSettings) -> Service:
    """Return the service, configured but not started."""
    fence = Fence()
    service = Service(
        STAGE,
        connection,
        Group.NOTIFICATION,
        settings,
        inputs=(Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED),
        outputs={Topic.NOTIFICATIONS_SENT: id_reader("notification_id")},
        fence=fence,
        background=(Topic.PAYMENTS_SETTLED, Topic.NOTIFICATIONS_SENT),  # of payments, only declined ones matter
    )
    target = service.topic_name(Topic.NOTIFICATIONS_SENT)

    def effect(notification: NotificationSent) -> Effect:
        return Effect(notification.notification_id, target, notification.order_id.encode(), encode(notification))

    def notify_declined(payment: PaymentSettled) -> Iterator[Effect]:
        notification = declined_message(payment, now_us())
        if notification is not None:
            yield effect(notification)

    def notify_shipped(shipment: ShipmentScheduled) -> Iterator[Effect]:
        yield effect(shipped_message(shipment, now_us()))

    service.consume(Topic.PAYMENTS_SETTLED, fenced_decision(fence, notify_declined))
    service.consume(Topic.SHIPMENTS_SCHEDULED, typed_decision(ShipmentScheduled, notify_shipped))
    return service


if __name__ == "__main__":
    main("notification", os.environ, ServiceSettings, build)
