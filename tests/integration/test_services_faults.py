"""Services that are killed, and a broker that is: nothing lost, no effect twice."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_helpers import produce, read_all, wait_for
from services_stack import Stack, a_stack, order, order_without_id, settled

from contracts.topics import Topic
from tailpack.local.broker import Broker

pytestmark = pytest.mark.kafka


@pytest.fixture
def stack(kafka: str, namespace: str, tmp_path: Path) -> Iterator[Stack]:
    with a_stack(kafka, namespace, tmp_path) as running:
        yield running


@pytest.mark.parametrize("service", ["order", "shipment", "notification"])
def test_a_service_killed_again_and_again_writes_each_effect_once(stack: Stack, service: str) -> None:
    """Nothing is committed before the kills, so each falls between output and commit."""
    stack.settings["COMMIT_INTERVAL_S"] = "60"
    stack.start(service)
    source, target = {
        "order": (Topic.ORDERS_PLACED, Topic.PAYMENTS_REQUESTED),
        "shipment": (Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED),
        "notification": (Topic.PAYMENTS_SETTLED, Topic.NOTIFICATIONS_SENT),
    }[service]

    def keys() -> list[bytes | None]:
        return [record.key() for record in read_all(stack.kafka, stack.namespace, target)]

    placed = 0
    for _ in range(3):
        names = [f"o-{number}" for number in range(placed, placed + 200)]
        accepted = service == "shipment"
        values = [order(name) if service == "order" else settled(name, accepted=accepted) for name in names]
        produce(stack.kafka, stack.namespace, source, values)
        wait_for(lambda placed=placed: len(keys()) > placed, "some of the effects are written")
        placed += len(names)
        stack.kill(service)
        stack.start(service)
    wait_for(lambda: len(keys()) >= placed, "every effect is written")
    wait_for(lambda: stack.get(service, "/healthz")[1]["duplicates_dropped"] > 0, "repeats are dropped")
    assert len(keys()) == len(set(keys())) == placed


def test_services_survive_a_broker_that_is_killed_and_comes_back(
    private_broker: Broker, namespace: str, tmp_path: Path
) -> None:
    kafka = private_broker.address()
    assert kafka is not None
    with a_stack(kafka, namespace, tmp_path) as stack:
        stack.start("order", "shipment", "notification")
        processes = dict(stack.processes)
        before = [f"o-{number}" for number in range(50)]
        produce(kafka, namespace, Topic.ORDERS_PLACED, map(order, before), key=b"k")
        produce(kafka, namespace, Topic.PAYMENTS_SETTLED, [settled(name, accepted=True) for name in before])
        private_broker.kill()
        code, told = stack.place(order_without_id())
        assert code == 503
        assert "Idempotency-Key" in told["reasons"][0]
        wait_for(
            lambda: all(stack.get(service, "/healthz")[0] == 503 for service in processes),
            "the services say that they are not well",
        )
        private_broker.start()
        produce(kafka, namespace, Topic.ORDERS_PLACED, [order("o-last")], key=b"k")
        produce(kafka, namespace, Topic.PAYMENTS_SETTLED, [settled("o-last", accepted=True)])

        def keys(topic: Topic) -> list[str]:
            return [(record.key() or b"").decode() for record in read_all(kafka, namespace, topic)]

        for topic in (Topic.PAYMENTS_REQUESTED, Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT):
            wait_for(
                lambda topic=topic: {*before, "o-last"} <= set(keys(topic)), f"{topic} holds all orders", deadline_s=60
            )
            assert len(keys(topic)) == len(set(keys(topic)))
        assert [process.poll() for process in processes.values()] == [None] * 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_is_stopped_leaves_nothing_to_repeat(stack: Stack, number: int) -> None:
    stack.settings["COMMIT_INTERVAL_S"] = "60"  # so that only the stop itself commits
    stack.start("shipment")

    def ship(*names: str) -> None:
        values = [settled(name, accepted=True) for name in names]
        produce(stack.kafka, stack.namespace, Topic.PAYMENTS_SETTLED, values, key=b"k")
        wait_for(lambda: names[-1].encode() in written(), "the last shipment is scheduled")

    def written() -> list[bytes | None]:
        return [record.key() for record in read_all(stack.kafka, stack.namespace, Topic.SHIPMENTS_SCHEDULED)]

    ship(*(f"o-{index}" for index in range(100)))
    assert stack.stop("shipment", number) == 0
    stack.start("shipment")
    ship("o-last")
    assert stack.get("shipment", "/healthz")[1]["duplicates_dropped"] == 0
    assert len(written()) == 101


def test_a_missing_topic_is_named(kafka: str, tmp_path: Path) -> None:
    environ = {
        "TAILPACK_BOOTSTRAP_SERVERS": kafka,
        "TAILPACK_NAMESPACE": "absent",
        "TAILPACK_DATA_DIR": str(tmp_path),
        "TAILPACK_BROKER_DEADLINE_S": "1",
    }
    command = [sys.executable, "-m", "services.shipment"]
    ended = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, timeout=60, check=False)
    (line,) = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert line.startswith("shipment: topic absent.")
