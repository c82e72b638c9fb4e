"""Parcels, carriers, the promised day, and what the customer is told."""

from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import COUNTRIES, PaymentSettled, ShipmentScheduled, Timeline
from services.common.records import effect_id
from services.notification.domain import declined, shipped
from services.shipment.domain import CARRIERS, parcel, promised_on, schedule

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


def test_a_shipment_continues_the_timeline() -> None:
    shipment = schedule(PAYMENT, 9)
    assert shipment is not None
    assert shipment.timeline == msgspec.structs.replace(PAYMENT.timeline, shipped_us=9)
    assert shipment.shipment_id == effect_id("o-1", "shipment")
    assert shipment.carrier == "DHL"


@given(st.integers(0, 10**10), st.integers(0, 10**10))
def test_the_same_payment_gives_the_same_shipment_whenever_it_is_made(first_us: int, later_us: int) -> None:
    one, other = schedule(PAYMENT, first_us), schedule(PAYMENT, later_us)
    assert one is not None
    assert other is not None
    assert msgspec.structs.replace(one, timeline=other.timeline) == other


def test_every_country_has_a_carrier() -> None:
    assert set(CARRIERS) == set(COUNTRIES)


@pytest.mark.parametrize(("amount", "size"), [(1, "S"), (5_000, "S"), (5_001, "M"), (500_000, "L"), (500_001, "XL")])
def test_a_parcel_is_labelled_by_size_and_number(amount: int, size: str) -> None:
    assert parcel("1f3c9a20-0000", amount) == f"{size}-1F3C9A20"


@pytest.mark.parametrize(
    ("placed_us", "days", "promised"),
    [
        (us(2024, 1, 3, 13, 59, 59), 1, date(2024, 1, 4)),  # Wednesday before the cut-off
        (us(2024, 1, 3, 14, 0, 0), 1, date(2024, 1, 5)),  # at the cut-off it leaves on Thursday
        (us(2024, 1, 6, 9, 0, 0), 1, date(2024, 1, 8)),  # Saturday: Sunday is no working day
        (us(2024, 1, 6, 15, 0, 0), 1, date(2024, 1, 9)),  # leaves on Monday
    ],
)
def test_the_promised_day(placed_us: int, days: int, promised: date) -> None:
    assert promised_on(placed_us, days) == promised


@given(st.integers(us(1990, 1, 1), us(2090, 1, 1)), st.integers(1, 10))
def test_a_promise_is_never_a_sunday_and_never_too_early(placed_us: int, days: int) -> None:
    promised = promised_on(placed_us, days)
    placed = datetime.fromtimestamp(placed_us // 1_000_000, UTC).date()
    assert promised.weekday() != 6
    assert timedelta(days) <= promised - placed <= timedelta(days + 2 + (days + 2) // 6 + 1)


@given(st.integers(us(1990, 1, 1), us(2090, 1, 1)), st.integers(0, 3600 * 10**6), st.integers(1, 10))
def test_who_orders_later_is_never_served_earlier(placed_us: int, later_by_us: int, days: int) -> None:
    assert promised_on(placed_us, days) <= promised_on(placed_us + later_by_us, days)


def test_a_declined_payment_is_told_with_amount_and_reason() -> None:
    told = declined(DECLINED, 9)
    assert told is not None
    assert told.text == "Your payment of 12.05 EUR for order o-1 was declined: card limit."
    assert (told.accepted, told.shipment_id) == (False, None)
    assert told.timeline == msgspec.structs.replace(DECLINED.timeline, notified_us=9)


def test_an_accepted_payment_is_told_by_its_shipment_alone() -> None:
    assert declined(PAYMENT, 9) is None
    told = shipped(SHIPMENT, 9)
    assert told.text == "Your order o-1 is on its way: DHL brings parcel S-1F by 2024-01-04."
    assert (told.accepted, told.shipment_id) == (True, "s-1")
    assert told.timeline == msgspec.structs.replace(SHIPMENT.timeline, notified_us=9)


@given(st.text(max_size=64).map(lambda text: text.encode("utf-8", "ignore").decode()), st.integers(0), st.integers(0))
def test_an_order_has_one_notification_whoever_tells_it(order_id: str, one_us: int, other_us: int) -> None:
    by_payment = declined(msgspec.structs.replace(DECLINED, order_id=order_id), one_us)
    by_shipment = shipped(msgspec.structs.replace(SHIPMENT, order_id=order_id), other_us)
    assert by_payment is not None
    assert by_payment.notification_id == by_shipment.notification_id == effect_id(order_id, "notification")
