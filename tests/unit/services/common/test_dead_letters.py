"""Dead letters hold what was refused, without card numbers."""

import re

from hypothesis import given
from hypothesis import strategies as st

from contracts.events import DeadLetter
from services.common.dead_letters import PAYLOAD_LIMIT, dead_letter, mask_cards
from services.common.records import Incoming, Refusal


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
