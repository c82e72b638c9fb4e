"""What the customer is told."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import PaymentSettled, ShipmentScheduled, Timeline
from services.common.records import effect_id
from services.notification.domain import declined, shipped

TIMES = Timeline(intended_us=1, placed_us=2, accepted_us=3, received_us=4, done_us=5)
PAYMENT = PaymentSettled(
    payment_id="p-1", order_id="o-1", customer="ada", merchant="books", country="DE", currency="EUR",
    amount_minor=1205, accepted=False, decline_reason="card limit", risk_score=0.1, timeline=TIMES,
)  # fmt: skip
SHIPMENT = ShipmentScheduled(
    shipment_id="s-1", order_id="o-1", payment_id="p-1", customer="ada", country="DE", parcel="S-1F", carrier="DHL",
    promised_on="2024-01-04", timeline=msgspec.structs.replace(TIMES, shipped_us=6),
)  # fmt: skip


def test_a_declined_payment_is_told_with_amount_and_reason() -> None:
    told = declined(PAYMENT, 9)
    assert told is not None
    assert told.text == "Your payment of 12.05 EUR for order o-1 was declined: card limit."
    assert (told.accepted, told.shipment_id) == (False, None)
    assert told.timeline == msgspec.structs.replace(TIMES, notified_us=9)


def test_an_accepted_payment_is_told_by_its_shipment_alone() -> None:
    assert declined(msgspec.structs.replace(PAYMENT, accepted=True), 9) is None
    told = shipped(SHIPMENT, 9)
    assert told.text == "Your order o-1 is on its way: DHL brings parcel S-1F by 2024-01-04."
    assert (told.accepted, told.shipment_id) == (True, "s-1")
    assert told.timeline == msgspec.structs.replace(SHIPMENT.timeline, notified_us=9)


@given(st.text(max_size=64).map(lambda text: text.encode("utf-8", "ignore").decode()), st.integers(0), st.integers(0))
def test_an_order_has_one_notification_whoever_tells_it(order_id: str, one_us: int, other_us: int) -> None:
    by_payment = declined(msgspec.structs.replace(PAYMENT, order_id=order_id), one_us)
    by_shipment = shipped(msgspec.structs.replace(SHIPMENT, order_id=order_id), other_us)
    assert by_payment is not None
    assert by_payment.notification_id == by_shipment.notification_id == effect_id(order_id, "notification")
