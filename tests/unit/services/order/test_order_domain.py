"""What becomes of an order."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.catalogue import MAX_ORDER_BYTES
from contracts.events import OrderPlaced, card_token
from services.common.errors import RefusedError
from services.common.records import Incoming
from services.order.domain import (
    fingerprint,
    order_of,
    payment_effect_id,
    payment_partition,
    payment_request,
)

GOOD: dict[str, Any] = {
    "v": 1,
    "order_id": "o-1",
    "customer": "ada",
    "merchant": "books",
    "country": "DE",
    "currency": "EUR",
    "amount_minor": 1250,
    "card_number": "4111111111111111",
}
ORDER = msgspec.convert(GOOD, OrderPlaced)


def record(value: Any, headers: dict[str, bytes] | None = None) -> Incoming:
    body = value if isinstance(value, bytes) or value is None else msgspec.json.encode(value)
    return Incoming("orders.placed", 2, 40, 5_000_000, b"o-1", body, headers or {})


def reasons(value: Any) -> tuple[str, ...]:
    with pytest.raises(RefusedError) as refused:
        order_of(record(value))
    return refused.value.reasons


def test_a_good_order_is_accepted() -> None:
    assert order_of(record(GOOD)) == ORDER


def test_all_reasons_are_told_even_where_decoding_stops_at_the_first() -> None:
    bad = {**GOOD, "amount_minor": "much", "currency": "XXX", "card_number": "4111111111111112"}
    assert [reason.split(":")[0] for reason in reasons(bad)] == ["currency", "amount_minor", "card_number"]


def test_what_is_no_order_is_refused() -> None:
    assert reasons(None) == ("the record has no value",)
    assert "not JSON" in reasons(b"\x00\xff")[0]
    assert "not a OrderPlaced" in reasons([1])[0]
    assert "schema version 2 is unknown" in reasons({**GOOD, "v": 2})[0]
    assert str(MAX_ORDER_BYTES) in reasons(b" " * (MAX_ORDER_BYTES + 1))[0]


@given(st.text(), st.integers(1, 50))
def test_a_customer_always_goes_to_the_same_partition(customer: str, partitions: int) -> None:
    customer = customer.encode("utf-8", "ignore").decode()
    partition = payment_partition(customer, None, "key", partitions)
    assert 0 <= partition < partitions
    assert partition == payment_partition(customer, None, "explicit", partitions)


def test_the_hash_is_the_same_in_every_process() -> None:
    assert [payment_partition(name, None, "key", 9) for name in ("ada", "bob", "cleo")] == [3, 8, 4]


def test_the_load_chooses_the_partition_under_explicit_grouping_only() -> None:
    assert payment_partition("ada", 3, "explicit", 9) == 3
    assert payment_partition("ada", 3, "key", 9) == payment_partition("ada", None, "key", 9)
    with pytest.raises(RefusedError, match="header partition is 9; partitions are 0 to 8"):
        payment_partition("ada", 9, "explicit", 9)


def test_the_card_number_goes_no_further() -> None:
    request = payment_request(ORDER, record(GOOD), "secret", 9)
    assert ORDER.card_number.encode() not in msgspec.json.encode(request)
    assert request.card_token == card_token(ORDER.card_number, "secret")
    assert request.card_token != card_token(ORDER.card_number, "another secret")


def test_times_come_from_the_headers_or_from_the_record() -> None:
    told = payment_request(ORDER, record(GOOD, {"intended_at": b"1", "placed_at": b"2"}), "s", 3).timeline
    assert (told.intended_us, told.placed_us, told.accepted_us) == (1, 2, 3)
    untold = payment_request(ORDER, record(GOOD), "s", 3).timeline
    assert (untold.intended_us, untold.placed_us) == (5_000_000, 5_000_000)


@given(st.text(), st.text())
def test_ids_follow_from_the_order_alone(one: str, other: str) -> None:
    one, other = (text.encode("utf-8", "ignore").decode() for text in (one, other))
    assert (payment_effect_id(one) == payment_effect_id(other)) == (one == other)


@pytest.mark.parametrize("field", ["customer", "merchant", "country", "currency", "amount_minor", "card_number"])
def test_the_fingerprint_tells_orders_apart_by_each_field(field: str) -> None:
    other = msgspec.structs.replace(ORDER, **{field: 7 if field == "amount_minor" else "other"})
    assert fingerprint(other, "s") != fingerprint(ORDER, "s")
    assert fingerprint(msgspec.structs.replace(ORDER, order_id="x"), "s") == fingerprint(ORDER, "s")
