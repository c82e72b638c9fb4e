"""Undecodable records are refused with the reason. Dead letters quote them, cut and without card numbers."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import DeadLetter, ShipmentScheduled, Timeline, luhn_digit
from services.common.records import (
    BARE_LETTER_LIMIT,
    KEY_LIMIT,
    LETTER_LIMIT,
    Incoming,
    Refusal,
    dead_letter,
    decoder,
    encode,
    letter_key,
)

SHIPMENT = ShipmentScheduled(
    shipment_id="s", order_id="o", payment_id="p", customer="c", country="DE", parcel="M-1", carrier="DHL",
    promised_on="2024-01-02", timeline=Timeline(intended_us=1, placed_us=2),
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "reason", "order_id"),
    [
        (None, "no value", None),
        (b"\xff\xfe", "not JSON", None),
        (b"[]", "not a ShipmentScheduled", None),
        (b'{"v": 2, "order_id": "o"}', "schema version 2 is unknown", "o"),
        (b'{"v": "one"}', "not a ShipmentScheduled", None),
        (b'{"v": 1' + b"0" * 5000 + b"}", "not a ShipmentScheduled", None),
        (encode(SHIPMENT).replace(b'"o"', b'"' + b"o" * 65 + b'"'), "length <= 64", "o" * 65),
        (b'{"v": 1, "order_id": "\xe4"}', "not JSON", None),
        (b'{"v": 1, "order_id": "o"}', "missing required field", "o"),
        (b'{"v": 1, "a": ' + b"[" * 30_000, "not JSON", None),
    ],
)
def test_an_undecodable_value_is_refused_with_its_reason(
    value: bytes | None, reason: str, order_id: str | None
) -> None:
    refused = decoder(ShipmentScheduled)(value)
    assert isinstance(refused, Refusal)
    assert reason in refused.reasons[0]
    assert refused.order_id == order_id


def letter_of(value: bytes | None, *reasons: str, order_id: str | None = "o", bare: bool = False) -> DeadLetter:
    record = Incoming("orders.placed", 3, 14, 0, b"k", value, {})
    return dead_letter("order", record, Refusal(reasons or ("a", "b"), order_id), 9, bare=bare)


ANYTHING = st.binary(max_size=60) | st.sampled_from([b"\x00", b'"', b"\\", "\U0001f600".encode(), b"\xff", b"4 "])


@given(ANYTHING, st.integers(0, 3000), st.text(max_size=20), st.integers(0, 40), st.booleans())
def test_a_letter_always_fits(part: bytes, times: int, text: str, reasons: int, bare: bool) -> None:
    record = Incoming("t" * 249, 2**31 - 1, 2**63 - 1, 0, part * times, part * times, {})
    refusal = Refusal((text * times,) * reasons, text * times)
    letter = dead_letter("notification", record, refusal, 10**16, bare=bare)
    assert len(encode(letter)) <= (BARE_LETTER_LIMIT if bare else LETTER_LIMIT)
    assert len(letter_key(record.key) or b"") <= KEY_LIMIT
    assert decoder(DeadLetter)(encode(letter)) == letter


CARDS = st.text("0123456789", min_size=11, max_size=18).map(lambda digits: digits + luhn_digit(digits))
SEPARATOR = st.characters(codec="utf-8", exclude_categories=("L", "N"))
SEPARATORS = st.text(SEPARATOR | st.sampled_from(" .\u00a0-"), max_size=8)
SPELLINGS = (
    str,
    lambda text: json.dumps(text)[1:-1],
    lambda text: "".join(f"\\u{ord(c):04x}" for c in text if ord(c) < 2**16),
)


@given(st.data(), CARDS, st.sampled_from(SPELLINGS))
def test_a_card_number_is_masked_with_any_separators_between_its_digits(
    data: st.DataObject, card: str, spelling: Callable[[str], str]
) -> None:
    spelled = spelling("".join(digit + data.draw(SEPARATORS) for digit in card))
    letter = letter_of(f'{{"note": "{spelled}"}}'.encode(), f"quoted {spelled}", order_id=spelled)
    key = letter_key(spelled.encode()) or b""
    for text in (letter.payload, letter.reasons[0], letter.order_id or "", key.decode(errors="ignore")):
        digits = "".join(filter(str.isdecimal, unescape(text)))
        assert card[-4:].startswith(digits)


def unescape(text: str) -> str:
    """Return a text that may be cut, with its escapes decoded."""
    whole = re.sub(r"\\u?[0-9a-f]{0,3}$", "", text)
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), whole)
