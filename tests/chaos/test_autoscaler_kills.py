"""Real Payment replicas are killed during a run: no event is lost, and the group continues."""

import signal
from pathlib import Path

import psutil
import pytest
from kafka_helpers import wait_for
from live_autoscaler import PARTITIONS, two_replicas
from payment_load import PaymentLoad

from contracts.journal import ReplicaChange
from tailpack.local.broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.long]
PATIENCE = {"SESSION_S": "120", "REBALANCE_TIMEOUT_S": "120"}
"""The group's with a dead member: far beyond the deadlines of these tests."""
RATE = 120.0


def test_a_broker_that_is_killed_and_comes_back_costs_holds_and_no_payment(
    private_broker: Broker, namespace: str, tmp_path: Path
) -> None:
    kafka = private_broker.address()
    assert kafka is not None
    with two_replicas(kafka, namespace, tmp_path, **PATIENCE) as autoscaler:
        autoscaler.wait_for_plan(1)
        with PaymentLoad(kafka, namespace, rate=RATE, partitions=PARTITIONS) as load:
            wait_for(lambda: len(load.settled()) > RATE, "a second of load served")
            private_broker.kill()
            wait_for(lambda: autoscaler.get("/decisions?limit=1")[0]["missing"], "a hold for want of data")
            assert autoscaler.get("/healthz")["status"] in ("ok", "degraded"), "it copes; Kafka is not well"
            private_broker.start()
            wait_for(lambda: not autoscaler.get("/decisions?limit=1")[0]["missing"], "observations")
        wait_for(lambda: not load.unserved(), "every payment served")
        died = [one for name in autoscaler.pids() for one in autoscaler.changes(name)]
        assert ReplicaChange.DIED not in [one.change for one in died], "an outage of the brokers kills no replica"
        psutil.Process(autoscaler.pids()["payment-0"]).kill()
        wait_for(lambda: [len(plan.replicas) for plan in autoscaler.plans()] == [2, 1, 2], "plans after the outage")
        autoscaler.signal(signal.SIGTERM)
        status, output = autoscaler.ended()
        assert status == 0
        assert "Traceback" not in output
