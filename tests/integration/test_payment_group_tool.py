"""Kafka's own tool sees the Payment group as it is: its members, and the partitions the plan gives each of them."""

import subprocess
import sys
from pathlib import Path

import pytest
from kafka_helpers import create_topics
from payment_group import PaymentGroup

from contracts.topics import Topic, qualified

pytestmark = pytest.mark.kafka


def test_kafka_consumer_groups_describes_the_planned_group(kafka: str, namespace: str, tmp_path: Path) -> None:
    create_topics(kafka, namespace, 3)
    with PaymentGroup(kafka, namespace, 3, tmp_path) as group:
        planned = {0: "payment-0", 1: "payment-1", 2: "payment-1"}
        group.start("payment-0", "payment-1")
        group.plan(["payment-0", "payment-1"], planned)
        group.wait_for_owners(planned)
        group.ask(30)
        group.wait_until_served()

        command = [sys.executable, "-m", "tailpack", "kafka", "consumer-groups", "--bootstrap-servers", kafka]
        described = subprocess.run(
            [*command, "--describe", "--group", group.group], capture_output=True, text=True, timeout=60, check=True
        )

    rows = [
        line.split() for line in described.stdout.splitlines() if qualified(namespace, Topic.PAYMENTS_REQUESTED) in line
    ]
    columns = next(line for line in described.stdout.splitlines() if line.startswith("GROUP")).split()
    seen = {int(row[columns.index("PARTITION")]): row[columns.index("CLIENT-ID")] for row in rows}
    assert seen == planned
    assert sum(int(row[columns.index("LOG-END-OFFSET")]) for row in rows) == 30
