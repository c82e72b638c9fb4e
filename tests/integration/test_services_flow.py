"""Order, Shipment and Notification on a real Kafka, and orders over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_helpers import produce, read_all, wait_for
from services_stack import CARD, PARTITIONS, Stack, a_stack, order, order_without_id

from contracts.events import DeadLetter, NotificationSent
from contracts.topics import Topic

pytestmark = pytest.mark.kafka


@pytest.fixture
def stack(kafka: str, namespace: str, tmp_path: Path) -> Iterator[Stack]:
    with a_stack(kafka, namespace, tmp_path) as running:
        yield running


def test_an_order_passes_every_stage_and_its_status_remains_after_a_restart(stack: Stack) -> None:
    stack.start("order", "shipment", "notification")
    code, answer = stack.place(order_without_id())
    assert code == 202
    (request,) = wait_for(stack.requests, "the payment is requested")
    assert request.order_id == answer["order_id"]
    assert stack.status(request.order_id) == "accepted"

    stack.settle(request)
    wait_for(lambda: stack.status(request.order_id) == "notified", "the customer is notified")
    (notification,) = stack.records(Topic.NOTIFICATIONS_SENT, NotificationSent)
    times = notification.timeline
    stages = [times.intended_us, times.accepted_us, times.shipped_us, times.notified_us]
    assert stages == sorted(stages)
    assert notification.accepted

    stack.kill("order")
    stack.start("order")
    code, after = stack.get("order", answer["status_url"])
    assert (code, after["status"], after["payment_accepted"]) == (200, "notified", True)
    assert after["shipment_id"] == notification.shipment_id
    assert stack.get("order", "/orders/unknown")[0] == 404
    assert [stack.stop(service) for service in ("order", "shipment", "notification")] == [0, 0, 0]


def test_duplicates_are_dropped_and_each_invalid_record_becomes_one_dead_letter(stack: Stack) -> None:
    stack.start("order")
    bad = [b"{", order("o-2", v=9), order("o-3", amount_minor=0, currency="XXX"), order("o-4", customer="x" * 20_000)]
    produce(stack.kafka, stack.namespace, Topic.ORDERS_PLACED, [order("o-1")] * 3 + bad, key=b"k")
    produce(
        stack.kafka,
        stack.namespace,
        Topic.ORDERS_PLACED,
        [order("o-5")],
        key=b"k",
        headers={"partition": str(PARTITIONS)},
    )
    produce(stack.kafka, stack.namespace, Topic.ORDERS_PLACED, [order("o-6")], key=b"k", headers={"partition": "2"})
    wait_for(lambda: len(stack.requests()) == 2, "the good orders are accepted")
    stack.kill("order")
    stack.start("order")
    produce(stack.kafka, stack.namespace, Topic.ORDERS_PLACED, [order("o-1"), order("o-7")], key=b"k")
    wait_for(lambda: "o-7" in {request.order_id for request in stack.requests()}, "the last order is accepted")

    assert sorted(request.order_id for request in stack.requests()) == ["o-1", "o-6", "o-7"]
    placed = read_all(stack.kafka, stack.namespace, Topic.PAYMENTS_REQUESTED)
    assert {record.partition() for record in placed if record.key() == b"o-6"} == {2}
    letters = stack.records(Topic.DEAD_LETTERS, DeadLetter)
    assert sorted((letter.order_id or "", len(letter.reasons)) for letter in letters) == [
        ("", 1),
        ("o-2", 1),
        ("o-3", 2),
        ("o-4", 1),
        ("o-5", 1),
    ]
    assert CARD not in "".join(letter.payload for letter in letters)
    assert stack.status("o-3") == "rejected"


def test_invalid_orders_over_http_are_rejected_with_all_reasons(stack: Stack) -> None:
    stack.start("order")
    assert stack.place(b"{")[0] == 400
    assert stack.place(b"[]")[0] == 422
    assert stack.place(b" " * 20_000)[0] == 413
    code, answer = stack.place(order_without_id(amount_minor=-1, card_number="4111111111111112"))
    assert code == 422
    assert [reason.split(":")[0] for reason in answer["reasons"]] == ["amount_minor", "card_number"]


def test_an_idempotency_key_identifies_one_order_even_after_a_restart(stack: Stack) -> None:
    stack.start("order")
    first = stack.place(order_without_id(), **{"Idempotency-Key": "key-1"})
    assert first[0] == 202
    assert stack.place(order_without_id(), **{"Idempotency-Key": "key-1"}) == first
    wait_for(lambda: stack.status(first[1]["order_id"]) == "accepted", "the order is accepted")
    stack.kill("order")
    stack.start("order")
    assert stack.place(order_without_id(), **{"Idempotency-Key": "key-1"}) == first
    code, answer = stack.place(order_without_id(amount_minor=99), **{"Idempotency-Key": "key-1"})
    assert code == 422
    assert "another order" in answer["reasons"][0]
    assert len(read_all(stack.kafka, stack.namespace, Topic.ORDERS_PLACED)) == 1
