"""The message to the customer. The same outcome always gives the same message with the same id."""

from typing import Final

import msgspec

from contracts.events import NotificationSent, PaymentSettled, ShipmentScheduled
from services.common.records import effect_id

STAGE: Final = "notification"


def shipped_message(shipment: ShipmentScheduled, notified_us: int) -> NotificationSent:
    """Return the message for a shipped order."""
    text = (
        f"Your order {shipment.order_id} is on its way: {shipment.carrier} brings parcel {shipment.parcel} "
        f"by {shipment.promised_on}."
    )
    return _message(shipment, text, notified_us, shipment.shipment_id)


def declined_message(payment: PaymentSettled, notified_us: int) -> NotificationSent | None:
    """Return the message for a declined payment; None for an accepted one, which gets a message about its shipment."""
    if payment.accepted:
        return None
    amount = f"{payment.amount_minor / 100:.2f} {payment.currency}"
    reason = payment.decline_reason or "no reason given"
    text = f"Your payment of {amount} for order {payment.order_id} was declined: {reason}."
    return _message(payment, text, notified_us)


def _message(
    of: PaymentSettled | ShipmentScheduled, text: str, notified_us: int, shipment_id: str | None = None
) -> NotificationSent:
    return NotificationSent(
        notification_id=effect_id(of.order_id, STAGE),
        order_id=of.order_id,
        payment_id=of.payment_id,
        shipment_id=shipment_id,
        customer=of.customer,
        accepted=shipment_id is not None,
        text=text,
        timeline=msgspec.structs.replace(of.timeline, notified_us=notified_us),
    )
