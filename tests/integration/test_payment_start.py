"""Starting and stopping one Payment replica: what a user sees when something is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_helpers import create_topics
from payment_group import PaymentGroup

from contracts.progress import ReplicaState

DEADLINE_S = 45


def run_payment(**variables: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
    command = [sys.executable, "-m", "services.payment"]
    return subprocess.run(
        command, env=clean | variables, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def test_a_broker_that_is_not_there_is_one_line_after_the_deadline():
    ended = run_payment(TAILPACK_REPLICA="payment-0", TAILPACK_BOOTSTRAP_SERVERS="127.0.0.1:1")

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "no Kafka at 127.0.0.1:1 within 30 s" in ended.stderr


@pytest.mark.kafka
def test_a_topic_with_fewer_partitions_than_it_shall_have_is_one_line(kafka, namespace):
    create_topics(kafka, namespace, 3)

    ended = run_payment(
        TAILPACK_REPLICA="payment-0",
        TAILPACK_BOOTSTRAP_SERVERS=kafka,
        TAILPACK_NAMESPACE=namespace,
        TAILPACK_PAYMENT_PARTITIONS="5",
    )

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert f"{namespace}.payments.requested has 3 partitions, the settings say 5" in ended.stderr


@pytest.mark.kafka
def test_a_warm_replica_stops_as_asked_and_says_so(kafka: str, namespace: str, tmp_path: Path):
    create_topics(kafka, namespace, 2)
    with PaymentGroup(kafka, namespace, 2, tmp_path) as group:
        group.plan(["another"], None)
        group.start("another")
        group.wait_for_owners({0: "another", 1: "another"})
        group.start("payment-0")
        group.wait_until(ReplicaState.WARM, "payment-0")

        assert group.stop("payment-0") == 0

        group.wait_until(ReplicaState.STOPPING, "payment-0")
        assert (tmp_path / "payment-0.log").read_text() == ""
