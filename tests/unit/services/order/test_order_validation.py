"""Every rule is asked, so that all mistakes can be mended in one go."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.catalogue import COUNTRIES, CURRENCIES, MAX_AMOUNT_MINOR, MERCHANTS
from contracts.events import OrderPlaced
from services.order.validation import luhn_valid, problems_in, problems_of

GOOD = {
    "order_id": "o-1",
    "customer": "ada",
    "merchant": "books",
    "country": "DE",
    "currency": "EUR",
    "amount_minor": 1250,
    "card_number": "4111111111111111",
}


def with_check_digit(digits: str) -> str:
    return next(digits + str(check) for check in range(10) if luhn_valid(digits + str(check)))


@given(st.text("0123456789", min_size=11, max_size=18))
def test_exactly_one_check_digit_fits(digits: str) -> None:
    assert sum(luhn_valid(digits + str(check)) for check in range(10)) == 1


@given(st.text("0123456789", min_size=11, max_size=18), st.data())
def test_one_wrong_digit_is_always_noticed(digits: str, data: st.DataObject) -> None:
    number = with_check_digit(digits)
    place = data.draw(st.integers(0, len(number) - 1))
    other = data.draw(st.sampled_from(sorted(set("0123456789") - {number[place]})))
    assert not luhn_valid(number[:place] + other + number[place + 1 :])


def test_a_good_order_has_no_problems() -> None:
    assert problems_in(GOOD) == ()
    assert problems_of(msgspec.convert(GOOD, OrderPlaced)) == ()


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("order_id", "", "1 to 64 characters"),
        ("order_id", "o" * 65, "1 to 64 characters"),
        ("customer", "a\nb", "cannot be printed"),
        ("customer", "\ud800", "cannot be printed"),
        ("merchant", "weapons", "no known merchant"),
        ("country", "XX", "no known country"),
        ("currency", "eur", "no known currency"),
        ("amount_minor", 0, "above 0"),
        ("amount_minor", -5, "above 0"),
        ("amount_minor", MAX_AMOUNT_MINOR + 1, "at most"),
        ("amount_minor", "12", "Expected `int`"),
        ("amount_minor", 1.5, "Expected `int`"),
        ("card_number", "4111111111111112", "Luhn"),
        ("card_number", "4111", "12 to 19 digits"),
        ("card_number", "٤" * 16, "12 to 19 digits"),
        ("card_number", None, "Expected `str`"),
    ],
)
def test_a_bad_field_is_named_with_the_reason(field: str, value: Any, reason: str) -> None:
    (problem,) = problems_in({**GOOD, field: value})
    assert problem.startswith(f"{field}: ")
    assert reason in problem


def test_an_unknown_schema_version_is_a_problem() -> None:
    assert problems_in({**GOOD, "v": 7}) == ("v: schema version 7 is unknown; this service understands 1",)


BAD_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "order_id": st.just("") | st.integers(),
    "customer": st.just("x" * 65),
    "merchant": st.text().filter(lambda text: text not in MERCHANTS),
    "country": st.text().filter(lambda text: text not in COUNTRIES),
    "currency": st.text().filter(lambda text: text not in CURRENCIES),
    "amount_minor": st.integers(max_value=0) | st.text() | st.integers(min_value=MAX_AMOUNT_MINOR + 1),
    "card_number": st.text("0123456789", min_size=1).filter(lambda text: not luhn_valid(text)),
}


@given(st.fixed_dictionaries({}, optional=BAD_VALUES), st.sets(st.sampled_from(sorted(GOOD))))
def test_every_bad_and_every_missing_field_is_named_and_no_other(bad: dict[str, Any], missing: set[str]) -> None:
    fields = {name: value for name, value in {**GOOD, **bad}.items() if name not in missing}
    named = {problem.split(":")[0] for problem in problems_in(fields)}
    assert named == set(bad) | missing


@given(st.text("0123456789", min_size=12, max_size=19).filter(lambda text: not luhn_valid(text)))
def test_reasons_never_repeat_the_card_number(number: str) -> None:
    assert not any(number in problem for problem in problems_in({**GOOD, "card_number": number}))
