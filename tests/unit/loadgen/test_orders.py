"""Orders: valid unless asked otherwise, and the same whenever they are asked for."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.catalogue import COUNTRIES, CURRENCIES, MAX_AMOUNT_MINOR, MAX_ORDER_BYTES, MERCHANTS
from loadgen.orders import CUSTOMERS, Flaw, Orders, card_number, luhn_digit

numbers = st.integers(0, 2**40)


def passes_luhn(number: str) -> bool:
    """The rule as ISO/IEC 7812-1 puts it, written another way than in the generator."""
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


def test_luhn_agrees_with_published_test_cards() -> None:
    for card in ("4111111111111111", "5555555555554444", "378282246310005"):
        assert luhn_digit(card[:-1]) == card[-1]


def test_orders_do_not_depend_on_the_order_of_asking() -> None:
    orders = Orders("run", 1)
    forwards = [orders.order(number) for number in range(50)]
    assert [Orders("run", 1).order(number) for number in reversed(range(50))] == forwards[::-1]


def test_no_two_orders_share_an_id_in_one_run_or_two() -> None:
    ids = {Orders(run, seed).order_id(number) for run in ("a", "b") for seed in (1, 2) for number in range(500)}
    assert len(ids) == 2000


def test_a_seed_is_the_same_trade_in_every_run() -> None:
    first, second = Orders("a", 1).order(5), Orders("b", 1).order(5)
    assert first != second
    assert msgspec.structs.replace(second, order_id=first.order_id) == first


def test_customers_keep_their_card_and_country() -> None:
    orders = [Orders("run", 1).order(number) for number in range(5000)]
    by_customer = {(order.customer, order.card_number, order.country) for order in orders}
    assert len(by_customer) == len({order.customer for order in orders})
    assert len({card_number(customer) for customer in range(CUSTOMERS)}) == CUSTOMERS


def test_the_share_of_flawed_orders_is_as_asked_and_each_flaw_occurs() -> None:
    flaws = [Orders("run", 1, invalid_share=0.2).flaw(number) for number in range(5000)]
    assert sum(flaw is not None for flaw in flaws) / 5000 == pytest.approx(0.2, abs=0.02)
    assert {flaw for flaw in flaws if flaw} == set(Flaw)


def test_a_flawed_order_is_wrong_in_that_one_way() -> None:
    sound, flawed = Orders("run", 1), Orders("run", 1, invalid_share=1.0)
    changed = {
        Flaw.AMOUNT: "amount_minor",
        Flaw.CARD: "card_number",
        Flaw.CURRENCY: "currency",
        Flaw.MERCHANT: "merchant",
    }
    for number in range(100):
        flaw = flawed.flaw(number)
        assert flaw is not None
        before, after = (msgspec.structs.asdict(orders.order(number)) for orders in (sound, flawed))
        assert [field for field in before if before[field] != after[field]] == [changed[flaw]]
    cards = [flawed.order(number).card_number for number in range(500) if flawed.flaw(number) is Flaw.CARD]
    assert not any(map(passes_luhn, cards))
