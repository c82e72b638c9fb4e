"""Orders over HTTP on a real Kafka."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_helpers import read_all, wait_for
from services_stack import Stack, a_stack, order_without_id

from contracts.topics import Topic

pytestmark = pytest.mark.kafka


@pytest.fixture
def stack(kafka: str, namespace: str, tmp_path: Path) -> Iterator[Stack]:
    with a_stack(kafka, namespace, tmp_path) as running:
        yield running


def test_orders_over_http_are_refused_with_every_reason(stack: Stack) -> None:
    stack.start("order")
    assert stack.place(b"{")[0] == 400
    assert stack.place(b"[]")[0] == 422
    assert stack.place(b" " * 20_000)[0] == 413
    code, told = stack.place(order_without_id(amount_minor=-1, card_number="4111111111111112"))
    assert code == 422
    assert [reason.split(":")[0] for reason in told["reasons"]] == ["amount_minor", "card_number"]


def test_an_idempotency_key_stands_for_one_order_also_after_a_restart(stack: Stack) -> None:
    stack.start("order")
    first = stack.place(order_without_id(), **{"Idempotency-Key": "key-1"})
    assert first[0] == 202
    assert stack.place(order_without_id(), **{"Idempotency-Key": "key-1"}) == first
    wait_for(lambda: stack.status(first[1]["order_id"]) == "accepted", "the order is accepted")
    stack.kill("order")
    stack.start("order")
    assert stack.place(order_without_id(), **{"Idempotency-Key": "key-1"}) == first
    code, told = stack.place(order_without_id(amount_minor=99), **{"Idempotency-Key": "key-1"})
    assert code == 422
    assert "another order" in told["reasons"][0]
    assert len(read_all(stack.kafka, stack.namespace, Topic.ORDERS_PLACED)) == 1
