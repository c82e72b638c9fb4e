"""The status of an order never goes back, whatever the order in which the topics are read."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.order.status import OrderStatus, Status, StatusBoard


def news(status: Status, order_id: str = "o", **known: object) -> OrderStatus:
    return msgspec.convert({"order_id": order_id, "status": status.value, "at_us": 1, **known}, OrderStatus)


def board(max_orders: int = 10) -> tuple[StatusBoard, dict[bytes, bytes]]:
    store: dict[bytes, bytes] = {}
    return StatusBoard(store, "changelog", max_orders), store


def test_news_are_kept_and_written_to_the_changelog() -> None:
    orders, store = board()
    (effect,) = orders.learn(news(Status.ACCEPTED, fingerprint="f"))
    assert orders["o"].status is Status.ACCEPTED
    assert (effect.id, effect.topic, effect.key, effect.value) == (None, "changelog", b"o", store[b"o"])


def test_what_was_known_before_stays_known() -> None:
    orders, _ = board()
    for told in (
        news(Status.ACCEPTED, fingerprint="f"),
        news(Status.SETTLED, payment_accepted=True),
        news(Status.NOTIFIED, shipment_id="s"),
    ):
        list(orders.learn(told))
    assert orders["o"] == news(Status.NOTIFIED, fingerprint="f", payment_accepted=True, shipment_id="s")


def test_a_refusal_does_not_touch_an_order_that_was_accepted() -> None:
    orders, _ = board()
    list(orders.learn(news(Status.ACCEPTED)))
    assert list(orders.reject("o", ("bad",))) == []


def test_a_refused_order_shows_why_and_may_be_accepted_later() -> None:
    orders, _ = board()
    list(orders.reject("o", ("bad",)))
    assert (orders["o"].status, orders["o"].reasons) == (Status.REJECTED, ("bad",))
    list(orders.learn(news(Status.ACCEPTED)))
    assert orders["o"].status is Status.ACCEPTED


@pytest.mark.parametrize("order_id", [None, "", "x" * 65, "\ud800"])
def test_a_refused_record_without_usable_id_has_no_status(order_id: str | None) -> None:
    orders, store = board()
    assert list(orders.reject(order_id, ("bad",))) == []
    assert store == {}


def test_the_oldest_order_is_dropped_with_a_tombstone() -> None:
    orders, store = board(max_orders=2)
    effects = [effect for name in ("a", "b", "c") for effect in orders.learn(news(Status.ACCEPTED, name))]
    assert (effects[-1].key, effects[-1].value) == (b"a", None)
    assert list(store) == [b"b", b"c"]
    with pytest.raises(KeyError):
        orders["a"]


@given(st.lists(st.sampled_from(Status), min_size=1), st.randoms(use_true_random=False))
def test_the_end_is_the_same_in_any_order(told: list[Status], chance: object) -> None:
    shuffled = list(told)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = board()[0], board()[0]
    for status in told:
        list(one.learn(news(status)))
    for status in shuffled:
        list(other.learn(news(status)))
    assert one["o"].status is other["o"].status
