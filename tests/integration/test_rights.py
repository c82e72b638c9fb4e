"""Each service has its own principal, with only the rights that `tailpack topics create` prints.

These rights are sufficient for an order, and no service can write the topics of another.
"""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from kafka_helpers import create_topics, wait_for
from live_autoscaler import Autoscaler
from secured_broker import PASSWORD, SecuredKafka, secured_kafka
from services_stack import PARTITIONS, Stack, order_without_id

from contracts.connection import Connection
from contracts.topics import Topic, qualified
from tailpack.local import acls
from tailpack.local.ports import free_port

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

NAMESPACE = "shop"
SERVICES = ("order", "shipment", "notification")
TOKEN = "a token of the callers of this shop"
CARD_KEY = "a secret of the keyed hash of cards"
WATCHED = {"POLICY": "tail-aware", "MEMBER_RATE": "50", "PAYMENT_PARTITIONS": str(PARTITIONS)}
NOT_THEIRS = {
    "order": (Topic.PLANS, Topic.PAYMENTS_SETTLED),
    "payment": (Topic.PLANS, Topic.JOURNAL, Topic.PAYMENTS_REQUESTED),
    "shipment": (Topic.PAYMENTS_SETTLED, Topic.PLANS),
    "notification": (Topic.SHIPMENTS_SCHEDULED,),
    "autoscaler": (Topic.PROGRESS, Topic.PAYMENTS_REQUESTED),
    "keda": (Topic.PLANS,),
    "shadow": (Topic.PLANS, Topic.PAYMENTS_REQUESTED),
    "load": (Topic.PAYMENTS_SETTLED, Topic.PLANS),
    "report": (Topic.ORDERS_PLACED,),
}


@dataclass
class Shop:
    """A secured Kafka, and a login for each role."""

    kafka: SecuredKafka
    logins: dict[str, Path]

    def connection(self, role: str) -> Connection:
        return Connection(bootstrap_servers=self.kafka.address, client_properties=str(self.logins[role]))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with secured_kafka(tmp_path_factory.mktemp("rights"), prefix="elsewhere-") as kafka:
        create_topics(kafka.plain, NAMESPACE, PARTITIONS)
        rights = acls.of_run(NAMESPACE)
        logins = {}
        for role in rights:
            kafka.add_user(role)
            logins[role] = kafka.client_properties(user=role)
        acls.create(Connection(bootstrap_servers=kafka.plain, namespace=NAMESPACE), rights, {})
        yield Shop(kafka, logins)


def test_an_order_completes_with_only_the_printed_rights_and_no_secret_is_logged(shop: Shop, tmp_path: Path) -> None:
    files = {"API_TOKEN_FILE": TOKEN, "CARD_TOKEN_KEY_FILE": CARD_KEY}
    for name, held in files.items():
        (tmp_path / name).write_text(held + "\n", encoding="utf-8")
    stack = Stack(shop.kafka.address, NAMESPACE, tmp_path)
    stack.of_service = {one: {"CLIENT_PROPERTIES": str(shop.logins[one])} for one in SERVICES}
    stack.of_service["order"] |= {"DEMO": "false", **{name: str(tmp_path / name) for name in files}}
    logins = {
        "TAILPACK_CLIENT_PROPERTIES": str(shop.logins["autoscaler"]),
        "TAILPACK_REPLICA_CLIENT_PROPERTIES": str(shop.logins["payment"]),
    }
    payment = Autoscaler(
        shop.kafka.address, NAMESPACE, tmp_path / "state", partitions=PARTITIONS, initial_replicas=1,
        replica_module="services.payment", more=logins,
    )  # fmt: skip
    try:
        with payment, beside(shop, "keda", GRPC_PORT="0") as keda, beside(shop, "shadow", **WATCHED) as shadow:
            stack.start(*SERVICES)
            body = order_without_id()
            assert stack.place(body)[0] == 401
            assert stack.place(body, Authorization="Bearer another token")[0] == 401
            mine = {"Authorization": f"Bearer {TOKEN}"}
            code, answer = stack.place(body, **mine)
            assert code == 202
            where = answer["status_url"]
            assert stack.get("order", where)[0] == 401
            done = lambda: stack.get("order", where, **mine)[1].get("status") == "notified"  # noqa: E731
            wait_for(done, "the order is done", deadline_s=60)
            pages = [page(port, path) for port in stack.ports.values() for path in ("/healthz", "/metrics")]
            pages += [page(payment.port, path) for path in ("/healthz", "/metrics", "/plan", "/decisions")]
            wait_for(lambda: '"epoch":' in json.loads(page(keda, "/plan")), "the scaler has the plan", deadline_s=120)
            seen = 'tailpack_shadow_replicas{of="group"} 1.0'
            wait_for(lambda: seen in json.loads(page(shadow, "/metrics")), "the shadow sees the group", deadline_s=120)
            pages += [page(port, path) for port in (keda, shadow) for path in ("/healthz", "/metrics")]
            assert all(json.loads(json.loads(page(port, "/healthz")))["status"] == "ok" for port in (keda, shadow))
            running = [one.pid for one in stack.processes.values()] + list(payment.pids().values())
            assert payment.process is not None
            argv = [" ".join(psutil.Process(pid).cmdline()) for pid in [*running, payment.process.pid]]
            for service in SERVICES:
                assert stack.stop(service) == 0
            payment.process.terminate()
            output = payment.ended()[1]
    finally:
        for process in stack.processes.values():
            process.kill()
            process.wait(10)
    logs = [one.read_text() for one in tmp_path.rglob("*.log")]
    assert len(logs) == len(SERVICES) + 1
    for text in [output, *logs, *pages, *argv]:
        for secret in (PASSWORD, TOKEN, CARD_KEY):
            assert secret not in text


@pytest.mark.parametrize(("role", "topic"), [(role, topic) for role, topics in NOT_THEIRS.items() for topic in topics])
def test_no_service_can_write_the_topics_of_another(shop: Shop, role: str, topic: Topic) -> None:
    errors: list[KafkaError | None] = []
    producer = Producer(shop.connection(role).librdkafka() | {"message.timeout.ms": 20_000})
    producer.produce(qualified(NAMESPACE, topic), b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert errors[0] is not None
    assert errors[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("role", "topic"),
    [("shipment", Topic.ORDERS_PLACED), ("payment", Topic.JOURNAL), ("notification", Topic.PAYMENTS_REQUESTED)],
)
def test_no_service_can_read_topics_that_it_does_not_need(shop: Shop, role: str, topic: Topic) -> None:
    """Not even in its own group. Orders hold card numbers."""
    reader = Consumer(shop.connection(role).librdkafka() | {"group.id": qualified(NAMESPACE, role)})
    try:
        reader.subscribe([qualified(NAMESPACE, topic)])
        found = reader.poll(30)
    finally:
        reader.close()
    assert found is not None
    assert found.error() is not None
    assert found.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED  # type: ignore[union-attr]


@contextmanager
def beside(shop: Shop, role: str, **settings: str) -> Iterator[int]:
    """Run KEDA's scaler or a shadow under its own login until the block ends; yield the port of its pages."""
    port = free_port()
    settings = {
        "BOOTSTRAP_SERVERS": shop.kafka.address, "NAMESPACE": NAMESPACE, "CLIENT_PROPERTIES": str(shop.logins[role]),
        "HTTP_PORT": str(port), **settings,
    }  # fmt: skip
    environ = os.environ | {f"TAILPACK_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "tailpack", {"keda": "scaler"}.get(role, role)]
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as process:
        try:
            yield port
        finally:
            process.terminate()
            assert process.wait(30) == 0


def page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return json.dumps(answer.read().decode())
