"""Starting and stopping one Payment replica: what a user sees when something is missing."""

import os
import subprocess
import sys

import pytest
from kafka_helpers import create_topics

DEADLINE_S = 120


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
