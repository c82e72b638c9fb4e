"""A valid order becomes a payment request; an invalid one is refused with all reasons."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import COUNTRIES, CURRENCIES, MAX_AMOUNT_MINOR, MERCHANTS, OrderPlaced, card_token, luhn_digit
from partitioners import Partitioner
from services.common.records import Incoming, Refusal
from services.order.domain import AcceptedOrder, Routing, accept_order, order_of, problems_in

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
    refusal = order_of(record(value))
    assert isinstance(refusal, Refusal)
    return refusal.reasons


def test_all_reasons_are_given_although_decoding_stops_at_the_first() -> None:
    bad = {**GOOD, "amount_minor": "much", "currency": "XXX", "card_number": "4111111111111112"}
    assert [reason.split(":")[0] for reason in reasons(bad)] == ["currency", "amount_minor", "card_number"]


@given(st.text(), st.integers(1, 50))
def test_a_customer_always_goes_to_the_same_partition(customer: str, partitions: int) -> None:
    customer = customer.encode("utf-8", "ignore").decode()
    partition = Routing(Partitioner.KG, partitions).partition(customer, None)
    assert 0 <= partition < partitions
    assert partition == Routing(Partitioner.EXPLICIT, partitions).partition(customer, None)


def test_the_load_keyed_the_partition_only_with_the_explicit_partitioner() -> None:
    explicit, keyed = Routing(Partitioner.EXPLICIT, 9), Routing(Partitioner("kg"), 9)
    assert explicit.partition("ada", 5) == 5
    assert keyed.partition("ada", 5) == keyed.partition("ada", None) == 3
    with pytest.raises(ValueError, match="header partition is 9; partitions are 0 to 8"):
        explicit.partition("ada", 9)


def accepted_with(headers: dict[str, bytes], key: str = "s") -> AcceptedOrder | Refusal:
    return accept_order(record(GOOD, headers), Routing(Partitioner.EXPLICIT, 9), key, 3)


def test_the_card_number_goes_no_further() -> None:
    outcome = accepted_with({}, "secret")
    assert isinstance(outcome, AcceptedOrder)
    assert ORDER.card_number.encode() not in msgspec.json.encode(outcome.request)
    assert outcome.request.card_token == card_token(ORDER.card_number, "secret")
    assert outcome.request.card_token != card_token(ORDER.card_number, "another secret")


@pytest.mark.parametrize("stamp_us", [-1000, 10**17])
def test_an_order_that_payment_would_refuse_is_refused(stamp_us: int) -> None:
    """A broker accepts a record without a timestamp: -1 ms."""
    placed = replace(record(GOOD), timestamp_us=stamp_us)
    refusal = accept_order(placed, Routing(Partitioner.KG, 9), "s", 3)
    assert isinstance(refusal, Refusal)
    assert "timeline.intended_us" in refusal.reasons[0]
    assert refusal.order_id == GOOD["order_id"]


def luhn_valid(number: str) -> bool:
    return number[-1] == luhn_digit(number[:-1])


BAD_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "order_id": st.just("") | st.integers(),
    "customer": st.just("x" * 65),
    "merchant": st.text().filter(lambda text: text not in MERCHANTS),
    "country": st.text().filter(lambda text: text not in COUNTRIES),
    "currency": st.text().filter(lambda text: text not in CURRENCIES),
    "amount_minor": st.integers(max_value=0) | st.text() | st.integers(min_value=MAX_AMOUNT_MINOR + 1),
    "card_number": st.text("0123456789", min_size=1).filter(lambda text: not luhn_valid(text)),
}


@given(st.fixed_dictionaries({}, optional=BAD_VALUES), st.sets(st.sampled_from(sorted(set(GOOD) - {"v"}))))
def test_exactly_the_bad_and_missing_fields_are_named(bad: dict[str, Any], missing: set[str]) -> None:
    fields = {name: value for name, value in {**GOOD, **bad}.items() if name not in missing}
    named_fields = {problem.split(":")[0] for problem in problems_in(fields)}
    assert named_fields == set(bad) | missing


@given(st.text("0123456789", min_size=12, max_size=19).filter(lambda text: not luhn_valid(text)))
def test_reasons_never_repeat_the_card_number(number: str) -> None:
    assert not any(number in problem for problem in problems_in({**GOOD, "card_number": number}))
