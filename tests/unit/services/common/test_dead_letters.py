"""What cannot be decoded is refused with the reason; dead letters hold it, without card numbers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import DeadLetter, ShipmentScheduled, Timeline
from services.common.records import PAYLOAD_LIMIT, Incoming, Refusal, dead_letter, decoder, encode, mask_cards

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
        (b"[]", "not a ShipmentScheduled", None),
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


def letter_of(value: bytes | None) -> DeadLetter:
    return dead_letter("order", Incoming("orders.placed", 3, 14, 0, b"k", value, {}), Refusal(("a", "b"), "o"), 9)


def test_the_payload_is_cut_and_need_not_be_text() -> None:
    assert len(letter_of(b"x" * 10_000).payload) == PAYLOAD_LIMIT
    assert letter_of(b"\xff").payload == "\ufffd"
    assert letter_of(None).payload == ""


def test_only_the_last_four_digits_of_a_card_stay() -> None:
    assert mask_cards('{"card_number":"4111111111111111"}') == '{"card_number":"************1111"}'
    assert mask_cards("4111 1111-1111 1111!") == "**** ****-**** 1111!"
    assert mask_cards("378282246310005") == "***********0005"
    assert mask_cards("amount 12345678901") == "amount 12345678901"


@given(st.text(st.sampled_from("0123456789 -ab{}")))
def test_no_run_of_twelve_digits_survives(text: str) -> None:
    masked = mask_cards(text)
    assert not re.search(r"(?:\d[ -]?){11}\d", masked)
    assert len(masked) == len(text)
