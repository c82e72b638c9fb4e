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
    return NotificationSent(
        notification_id=effect_id(shipment.order_id, STAGE),
        order_id=shipment.order_id,
        payment_id=shipment.payment_id,
        shipment_id=shipment.shipment_id,
        customer=shipment.customer,
        accepted=True,
        text=text,
        timeline=msgspec.structs.replace(shipment.timeline, notified_us=notified_us),
    )


def declined_message(payment: PaymentSettled, notified_us: int) -> NotificationSent | None:
    """Return the message for a declined payment; None for an accepted one, which gets a message about its shipment."""
    if payment.accepted:
        return None
    amount = f"{payment.amount_minor / 100:.2f} {payment.currency}"
    reason = payment.decline_reason or "no reason given"
    return NotificationSent(
        notification_id=effect_id(payment.order_id, STAGE),
        order_id=payment.order_id,
        payment_id=payment.payment_id,
        shipment_id=None,
        customer=payment.customer,
        accepted=False,
        text=f"Your payment of {amount} for order {payment.order_id} was declined: {reason}.",
        timeline=msgspec.structs.replace(payment.timeline, notified_us=notified_us),
    )
