"""Replicas and the broker end during a run: no event is lost, and repeats are identical."""

import os
import re
import signal

import pytest
from kafka_helpers import create_topics, wait_for
from payment_group import PaymentGroup, assert_effects

pytestmark = [pytest.mark.kafka, pytest.mark.long]


def test_a_replica_stopped_while_no_broker_answers_ends_soon_and_its_successor_serves_the_rest(
    private_broker, namespace, tmp_path
):
    kafka = private_broker.address()
    create_topics(kafka, namespace, 6)
    with PaymentGroup(kafka, namespace, 6, tmp_path, settings={"TAILPACK_DRAIN_S": "60"}) as group:
        group.start("payment-0")
        group.wait_for_owners(dict.fromkeys(range(6), "payment-0"))
        group.ask(600)
        wait_for(lambda: group.read_progress()["payment-0"].processed > 100, "work is under way")
        broker_pid = private_broker.nodes[1].pid
        os.kill(broker_pid, signal.SIGSTOP)

        assert group.stop("payment-0") == 0, "long before the drain time is over"

        log = (tmp_path / "payment-0.log").read_text()
        (warning,) = [line for line in log.splitlines() if "No broker answered" in line]
        assert re.search(r"No broker answered for .* since the last commit will be served again", warning)

        os.kill(broker_pid, signal.SIGCONT)
        group.start("payment-0")
        assert_effects(group.wait_until_served(deadline_s=90), group.produced)
        wait_for(lambda: sum(group.committed().values()) == group.produced, "every event is committed")
