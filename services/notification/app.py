"""Notification on Faust: shipments.scheduled and declined payments.settled → notifications.sent."""

from collections.abc import Iterator

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import NotificationSent, PaymentSettled, ShipmentScheduled
from contracts.topics import Group, Topic
from services.common.app import consume
from services.common.assembly import assemble
from services.common.codec import decoder, encode, identity_in
from services.common.records import Effect, Incoming
from services.common.service import Service
from services.common.settings import ServiceSettings
from services.notification.domain import STAGE, declined, shipped


def build(connection: Connection, settings: ServiceSettings) -> Service:
    """Return the service, wired and not started."""
    service = assemble(
        STAGE,
        connection,
        Group.NOTIFICATION,
        settings,
        inputs=(Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED),
        outputs={Topic.NOTIFICATIONS_SENT: identity_in("notification_id")},
    )
    decode_payment = decoder(PaymentSettled)
    decode_shipment = decoder(ShipmentScheduled)
    target = service.named(Topic.NOTIFICATIONS_SENT)

    def effect(notification: NotificationSent) -> Effect:
        return Effect(notification.notification_id, target, notification.order_id.encode(), encode(notification))

    def tell_declined(record: Incoming) -> Iterator[Effect]:
        notification = declined(decode_payment(record), now_us())
        if notification is not None:
            yield effect(notification)

    def tell_shipped(record: Incoming) -> Iterator[Effect]:
        yield effect(shipped(decode_shipment(record), now_us()))

    consume(service.app, service.named(Topic.PAYMENTS_SETTLED), service.stage, tell_declined)
    consume(service.app, service.named(Topic.SHIPMENTS_SCHEDULED), service.stage, tell_shipped)
    return service
