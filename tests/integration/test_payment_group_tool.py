"""Kafka's own tool sees the Payment group as it is: its members, and the partitions the plan gives each of them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_helpers import create_topics, wait_for
from payment_group import PaymentGroup

pytestmark = pytest.mark.kafka

NAMES = ["payment-0", "payment-1"]
PLANNED = {0: "payment-0", 1: "payment-1", 2: "payment-1"}


@pytest.fixture
def group(kafka: str, namespace: str, tmp_path: Path) -> Iterator[PaymentGroup]:
    create_topics(kafka, namespace, 3)
    with PaymentGroup(kafka, namespace, 3, tmp_path) as made:
        made.start(*NAMES)
        made.plan(NAMES, PLANNED)
        made.wait_for_owners(PLANNED)
        made.ask(30)
        made.wait_until_served()
        wait_for(lambda: sum(made.committed().values()) == 30, "every event is committed")
        yield made


def described(group: PaymentGroup, *options: str) -> list[dict[str, str]]:
    """The table that `kafka-consumer-groups --describe` prints: column → text, one for each row."""
    command = [sys.executable, "-m", "tailpack", "kafka", "consumer-groups", "--bootstrap-servers", group.kafka]
    said = subprocess.run(
        [*command, "--describe", *options, "--group", group.group],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    heading, *rows = [line.split() for line in said.splitlines() if line.strip()]
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_it_names_the_owner_and_the_lag_of_each_partition(group: PaymentGroup) -> None:
    rows = described(group)

    assert {int(row["PARTITION"]): row["CLIENT-ID"] for row in rows} == PLANNED
    assert {(row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in rows} == {("10", "10", "0")}
