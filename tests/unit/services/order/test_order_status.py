"""The status of an order never goes back, whatever the order in which the topics are read."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import OrderStatus, Status
from services.order.status import StatusBoard


def news(status: Status, order_id: str = "o", **known: object) -> OrderStatus:
    return msgspec.convert({"order_id": order_id, "status": status.value, "at_us": 1, **known}, OrderStatus)


def board(max_orders: int = 10) -> StatusBoard:
    return StatusBoard("orders.status", max_orders)


def test_what_was_known_before_stays_known() -> None:
    orders = board()
    for told in (
        news(Status.ACCEPTED, fingerprint="f"),
        news(Status.SETTLED, payment_accepted=True),
        news(Status.NOTIFIED, shipment_id="s"),
    ):
        list(orders.apply_update(told))
    assert orders["o"] == news(Status.NOTIFIED, fingerprint="f", payment_accepted=True, shipment_id="s")


def test_the_oldest_order_is_dropped() -> None:
    orders = board(max_orders=2)
    for name in ("a", "b", "c"):
        list(orders.apply_update(news(Status.ACCEPTED, name)))
    assert len(orders) == 2
    with pytest.raises(KeyError):
        orders["a"]


class Record:
    """A record of the topic, of which the board looks at the value."""

    def __init__(self, value: bytes) -> None:
        self.value = value


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(Status))), st.randoms(use_true_random=False))
def test_what_was_written_is_remembered_in_whatever_order_it_is_read(
    told: list[tuple[str, Status]], chance: Random
) -> None:
    before, after = board(), board()
    written = [effect.value or b"" for name, status in told for effect in before.apply_update(news(status, name))]
    chance.shuffle(written)
    for value in written:
        after.remember(Record(value))
    assert {name: before[name] for name, _ in told} == {name: after[name] for name, _ in told}


@given(st.lists(st.sampled_from(Status), min_size=1), st.randoms(use_true_random=False))
def test_the_end_is_the_same_in_any_order(told: list[Status], chance: Random) -> None:
    shuffled = list(told)
    chance.shuffle(shuffled)
    one, other = board(), board()
    for status in told:
        list(one.apply_update(news(status)))
    for status in shuffled:
        list(other.apply_update(news(status)))
    assert one["o"].status is other["o"].status
