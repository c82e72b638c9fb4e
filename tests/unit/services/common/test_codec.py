"""Decoding: what cannot be decoded is refused with the reason."""

import msgspec
import pytest

from contracts.events import ShipmentScheduled, Timeline
from services.common.codec import decoder, encode, identity_in
from services.common.errors import RefusedError
from services.common.records import Incoming

SHIPMENT = ShipmentScheduled(
    shipment_id="s", order_id="o", payment_id="p", customer="c", country="DE", parcel="M-1", carrier="DHL",
    promised_on="2024-01-02", timeline=Timeline(intended_us=1, placed_us=2),
)  # fmt: skip


def record(value: bytes | None, **headers: bytes) -> Incoming:
    return Incoming("shipments.scheduled", 0, 0, 1_000, b"o", value, headers)


def test_a_record_comes_back_as_it_was() -> None:
    assert decoder(ShipmentScheduled)(record(encode(SHIPMENT))) == SHIPMENT


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no value"),
        (b"\xff\xfe", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a ShipmentScheduled"),
        (b'{"order_id": "o"}', "schema version 0 is unknown"),
        (b'{"v": 2, "order_id": "o"}', "schema version 2 is unknown"),
        (b'{"v": "one"}', "not a ShipmentScheduled"),
        (b'{"v": 1, "order_id": "o"}', "missing required field"),
    ],
)
def test_what_is_no_record_is_refused(value: bytes | None, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        decoder(ShipmentScheduled)(record(value))


def test_a_refusal_carries_the_order_id_where_there_is_one() -> None:
    with pytest.raises(RefusedError) as refused:
        decoder(ShipmentScheduled)(record(b'{"v": 2, "order_id": "o-7"}'))
    assert refused.value.order_id == "o-7"


def test_an_id_is_read_without_the_rest_of_the_record() -> None:
    assert identity_in("shipment_id")(b'{"shipment_id": "s-1", "anything": [1, 2]}') == "s-1"
    assert identity_in("order_id", lambda text: text.upper())(b'{"order_id": "o"}') == "O"


def test_times_come_from_the_header_or_else_from_the_record() -> None:
    assert record(b"", intended_at=b"42").header_us("intended_at") == 42
    assert record(b"").header_us("intended_at") == 1_000


@pytest.mark.parametrize("text", [b"soon", b"", b"-1", b"1.5", b"9" * 17])
def test_a_header_that_is_no_number_is_refused(text: bytes) -> None:
    with pytest.raises(RefusedError, match="intended_at"):
        record(b"", intended_at=text).header_us("intended_at")


def test_encoded_records_are_json() -> None:
    assert msgspec.json.decode(encode(SHIPMENT))["promised_on"] == "2024-01-02"
