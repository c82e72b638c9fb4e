"""The status of an order never goes back, in whatever order the topics are read."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import OrderStatus, Status
from services.order.status import KEY_WINDOW_S, StatusBoard


def status_of(status: Status, order_id: str = "o", **known: object) -> OrderStatus:
    return msgspec.convert({"order_id": order_id, "status": status.value, "at_us": 1, **known}, OrderStatus)


def board(max_orders: int = 10) -> StatusBoard:
    return StatusBoard("orders.status", max_orders)


def test_an_update_keeps_fields_known_before() -> None:
    orders = board()
    for update in (
        status_of(Status.ACCEPTED, fingerprint="f"),
        status_of(Status.SETTLED, payment_accepted=True),
        status_of(Status.NOTIFIED, shipment_id="s"),
    ):
        list(orders.apply_update(update))
    assert orders["o"] == status_of(Status.NOTIFIED, fingerprint="f", payment_accepted=True, shipment_id="s")


def test_the_oldest_order_is_dropped() -> None:
    orders = board(max_orders=2)
    for name in ("a", "b", "c"):
        list(orders.apply_update(status_of(Status.ACCEPTED, name)))
    with pytest.raises(KeyError):
        orders["a"]


def test_reasons_on_the_board_show_no_card_number() -> None:
    orders = board()
    list(orders.reject("o", ("merchant: '4111111111111111' is not a known merchant",)))
    assert orders["o"].reasons == ("merchant: '************1111' is not a known merchant",)


def test_a_repeated_order_is_recognised_for_a_window_of_time_not_of_orders() -> None:
    orders, end_us = board(max_orders=2), KEY_WINDOW_S * 1_000_000
    for number, content in enumerate(("first", "second", "", "fourth", "fifth")):
        list(orders.apply_update(status_of(Status.ACCEPTED, f"o-{number}", fingerprint=content)))
    list(orders.reject("o-5", ("no",)))
    known = [orders.is_repeat(f"o-{number}", "first", end_us) for number in range(7)]
    assert known == [True, False, None, False, False, None, None]
    assert orders.is_repeat("o-0", "first", end_us + 2) is None
    assert orders.is_repeat("o-4", "fifth", end_us + 2) is True, "it is on the board"


class Record:
    """A record of the topic; the board only reads its value."""

    def __init__(self, value: bytes) -> None:
        self.value = value


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(Status))), st.randoms(use_true_random=False))
def test_the_board_is_restored_from_records_in_any_order(updates: list[tuple[str, Status]], random: Random) -> None:
    before, after = board(), board()
    written = [
        effect.value or b"" for name, status in updates for effect in before.apply_update(status_of(status, name))
    ]
    random.shuffle(written)
    for value in written:
        after.remember(Record(value))
    assert {name: before[name] for name, _ in updates} == {name: after[name] for name, _ in updates}


@given(st.lists(st.sampled_from(Status), min_size=1), st.randoms(use_true_random=False))
def test_the_final_status_is_the_same_in_any_order_of_updates(updates: list[Status], random: Random) -> None:
    shuffled = list(updates)
    random.shuffle(shuffled)
    first, second = board(), board()
    for status in updates:
        list(first.apply_update(status_of(status)))
    for status in shuffled:
        list(second.apply_update(status_of(status)))
    assert first["o"].status is second["o"].status
