"""Parcels, carriers, delivery days and messages to the customer."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import PaymentSettled, ShipmentScheduled, Timeline
from services.common.records import effect_id
from services.notification.domain import declined_message, shipped_message
from services.shipment.domain import delivery_day, schedule

PAYMENT = PaymentSettled(
    payment_id="p-1", order_id="o-1", customer="ada", merchant="books", country="DE", currency="EUR",
    amount_minor=1250, accepted=True, decline_reason=None, risk_score=0.1,
    timeline=Timeline(intended_us=0, placed_us=0, done_us=7, replica="payment-0"),
)  # fmt: skip
DECLINED = msgspec.structs.replace(PAYMENT, amount_minor=1205, accepted=False, decline_reason="card limit")
SHIPMENT = ShipmentScheduled(
    shipment_id="s-1", order_id="o-1", payment_id="p-1", customer="ada", country="DE", parcel="S-1F", carrier="DHL",
    promised_on="2024-01-04", timeline=msgspec.structs.replace(PAYMENT.timeline, shipped_us=6),
)  # fmt: skip


def us(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp() * 1_000_000)  # type: ignore[misc,arg-type]


def test_a_declined_payment_ships_nothing() -> None:
    assert schedule(DECLINED, 9) is None


@given(st.integers(0, 10**10), st.integers(0, 10**10))
def test_the_same_payment_gives_the_same_shipment_at_any_time(first_us: int, later_us: int) -> None:
    first, second = schedule(PAYMENT, first_us), schedule(PAYMENT, later_us)
    assert first is not None
    assert second is not None
    assert msgspec.structs.replace(first, timeline=second.timeline) == second


@given(st.integers(us(1990, 1, 1), us(2090, 1, 1)), st.integers(1, 10))
def test_a_delivery_day_is_never_a_sunday_and_never_too_early(placed_us: int, days: int) -> None:
    day = delivery_day(placed_us, days)
    placed = datetime.fromtimestamp(placed_us // 1_000_000, UTC).date()
    assert day.weekday() != 6
    assert timedelta(days) <= day - placed <= timedelta(days + 2 + (days + 2) // 6 + 1)


@given(st.text(max_size=64).map(lambda text: text.encode("utf-8", "ignore").decode()), st.integers(0), st.integers(0))
def test_payment_and_shipment_give_the_same_notification_id(order_id: str, payment_us: int, shipment_us: int) -> None:
    by_payment = declined_message(msgspec.structs.replace(DECLINED, order_id=order_id), payment_us)
    by_shipment = shipped_message(msgspec.structs.replace(SHIPMENT, order_id=order_id), shipment_us)
    assert by_payment is not None
    assert by_payment.notification_id == by_shipment.notification_id == effect_id(order_id, "notification")
