"""Order shares out by any grouping: the very partitions that its source would choose, so that only kg keeps a customer
together."""

from collections import defaultdict
from pathlib import Path

import msgspec
import numpy as np
import pytest
from kafka_helpers import produce, read_all, wait_for
from services_stack import PARTITIONS, a_stack, order

from contracts.events import Grouping, PaymentRequested
from contracts.topics import Topic
from grouping.source import Source

pytestmark = pytest.mark.kafka
ORDERS = 400


@pytest.mark.parametrize("grouping", [Grouping.KG, Grouping.POTC, Grouping.CG, Grouping.STICKY_SPLIT])
def test_order_chooses_as_its_source_does(kafka: str, namespace: str, tmp_path: Path, grouping: Grouping) -> None:
    customers = [f"customer-{number}" for number in np.random.default_rng(7).zipf(1.5, ORDERS)]
    with a_stack(kafka, namespace, tmp_path) as stack:
        stack.settings = {"GROUPING": grouping}
        stack.start("order")
        source = Source(grouping, PARTITIONS, number=stack.processes["order"].pid)
        placed = [order(f"o-{number}", customer=customer) for number, customer in enumerate(customers)]
        produce(kafka, namespace, Topic.ORDERS_PLACED, placed, key=b"k")
        records = wait_for(
            lambda: found if len(found := read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED)) == ORDERS else None,
            "every payment is requested",
        )
    chosen = {record.key().decode(): record.partition() for record in records}
    assert [chosen[f"o-{number}"] for number in range(ORDERS)] == [source.choose(one) for one in customers]
    partitions = defaultdict(set)
    for record in records:
        partitions[msgspec.json.decode(record.value(), type=PaymentRequested).customer].add(record.partition())
    assert all(len(some) == 1 for some in partitions.values()) == grouping.keeps_key_order
