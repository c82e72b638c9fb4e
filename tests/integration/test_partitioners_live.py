"""Order chooses the same partitions as a source with the same partitioner. Two Orders are two sources."""

from collections import defaultdict
from pathlib import Path

import msgspec
import numpy as np
import pytest
from kafka_helpers import produce, read_all, wait_for
from services_stack import PARTITIONS, a_stack, order

from contracts.events import PaymentRequested
from contracts.topics import Topic
from partitioners import Partitioner
from partitioners.source import Source

pytestmark = pytest.mark.kafka
ORDERS = 400
CUSTOMERS = [f"customer-{number}" for number in np.random.default_rng(7).zipf(1.5, ORDERS)]
PLACED = [order(f"o-{number}", customer=customer) for number, customer in enumerate(CUSTOMERS)]


def requests(kafka: str, namespace: str) -> list[tuple[PaymentRequested, int]]:
    """Return each payment asked for and its partition, once all are there."""
    records = wait_for(
        lambda: found if len(found := read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED)) >= ORDERS else None,
        "every payment is requested",
    )
    return [(msgspec.json.decode(one.value() or b"", type=PaymentRequested), one.partition() or 0) for one in records]


def together(found: list[tuple[PaymentRequested, int]]) -> dict[str, set[int]]:
    """Return the partitions of each customer."""
    partitions = defaultdict(set)
    for request, partition in found:
        partitions[request.customer].add(partition)
    return partitions


@pytest.mark.parametrize("partitioner", [Partitioner.KG, Partitioner.PORC])
def test_order_and_its_source_choose_alike(
    kafka: str, namespace: str, tmp_path: Path, partitioner: Partitioner
) -> None:
    with a_stack(kafka, namespace, tmp_path) as stack:
        stack.settings = {"PARTITIONER": partitioner}
        stack.start("order")
        source = Source(partitioner, PARTITIONS, number=stack.processes["order"].pid)
        produce(kafka, namespace, Topic.ORDERS_PLACED, PLACED, key=b"k")
        found = requests(kafka, namespace)
    chosen = {request.order_id: partition for request, partition in found}
    assert [chosen[f"o-{number}"] for number in range(ORDERS)] == [source.choose(one) for one in CUSTOMERS]
    assert all(len(some) == 1 for some in together(found).values()) == partitioner.keeps_key_order
