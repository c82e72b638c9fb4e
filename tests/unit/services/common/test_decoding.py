"""Decoding: what cannot be decoded is refused with the reason."""

import pytest

from contracts.events import ShipmentScheduled, Timeline
from services.common.records import Refusal, decoder, encode

SHIPMENT = ShipmentScheduled(
    shipment_id="s", order_id="o", payment_id="p", customer="c", country="DE", parcel="M-1", carrier="DHL",
    promised_on="2024-01-02", timeline=Timeline(intended_us=1, placed_us=2),
)  # fmt: skip


def test_a_record_comes_back_as_it_was() -> None:
    assert decoder(ShipmentScheduled)(encode(SHIPMENT)) == SHIPMENT


@pytest.mark.parametrize(
    ("value", "reason", "order_id"),
    [
        (None, "no value", None),
        (b"\xff\xfe", "not JSON", None),
        (b"{", "not JSON", None),
        (b"[]", "not a ShipmentScheduled", None),
        (b'{"order_id": "o"}', "schema version 0 is unknown", "o"),
        (b'{"v": 2, "order_id": "o"}', "schema version 2 is unknown", "o"),
        (b'{"v": "one"}', "not a ShipmentScheduled", None),
        (b'{"v": 1, "order_id": "o"}', "missing required field", "o"),
        (b'{"v": 1, "a": ' + b"[" * 30_000, "not JSON", None),
    ],
)
def test_what_is_no_record_is_refused(value: bytes | None, reason: str, order_id: str | None) -> None:
    refused = decoder(ShipmentScheduled)(value)
    assert isinstance(refused, Refusal)
    assert reason in refused.reasons[0]
    assert refused.order_id == order_id
