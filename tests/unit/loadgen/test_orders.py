"""Orders are valid by default and reproducible, in records with the headers that services expect."""

import uuid

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import COUNTRIES, CURRENCIES, MAX_AMOUNT_MINOR, MAX_ORDER_BYTES, MERCHANTS
from loadgen.orders import Orders

numbers = st.integers(0, 2**40)


def passes_luhn(number: str) -> bool:
    """Check the Luhn digit by ISO/IEC 7812-1, independently of the generator."""
    digits = [int(digit) for digit in number]
    for place in range(len(digits) - 2, -1, -2):
        digits[place] = sum(divmod(digits[place] * 2, 10))
    return sum(digits) % 10 == 0


@given(numbers, st.integers(0, 2**31))
def test_every_order_is_valid(number: int, seed: int) -> None:
    order = Orders("run", seed).order(number)
    assert passes_luhn(order.card_number)
    assert 0 < order.amount_minor <= MAX_AMOUNT_MINOR
    assert order.currency in CURRENCIES
    assert order.country in COUNTRIES
    assert order.merchant in MERCHANTS
    assert len(msgspec.json.encode(order)) < MAX_ORDER_BYTES


def test_order_ids_are_unique_within_and_across_runs() -> None:
    run_id = uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, "tailpack:orders"), "a:1")
    assert Orders("a", 1).order_id(7) == str(uuid.uuid5(run_id, "7"))
    ids = {Orders(run, seed).order_id(number) for run in ("a", "b") for seed in (1, 2) for number in range(500)}
    assert len(ids) == 2000
