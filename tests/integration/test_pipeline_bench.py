"""A stage alone, by several instances, on topics that are divided otherwise than usual."""

from pathlib import Path

import pytest
from kafka_helpers import read_all

from bench import BenchError
from bench.pipeline import WRITES, Stage
from contracts.connection import Connection
from tailpack.local.topics import create_topics

pytestmark = pytest.mark.kafka
ORDERS = 300


@pytest.mark.parametrize("name", WRITES)
def test_two_instances_share_a_stage_of_three_partitions(kafka: str, namespace: str, tmp_path: Path, name: str) -> None:
    connection = Connection(bootstrap_servers=kafka, namespace=namespace)
    create_topics(connection, 3, 3)
    row = Stage(name, connection, 3, tmp_path).measure(2, ORDERS, lambda _: None)
    assert (row.stage, row.instances, row.partitions, row.orders) == (name, 2, 3, ORDERS)
    assert row.orders_per_s > 0
    assert row.cores > 0
    written = read_all(kafka, namespace, WRITES[name])
    assert {record.partition() for record in written} == {0, 1, 2}


def test_an_instance_that_ends_says_why(kafka: str, namespace: str, tmp_path: Path) -> None:
    alone = Stage("shipment", Connection(bootstrap_servers=kafka, namespace=namespace), 0, tmp_path)
    with pytest.raises(BenchError, match=r"shipment 0 ended: .*TAILPACK_PIPELINE_PARTITIONS"):
        alone.measure(1, ORDERS, lambda _: None)
