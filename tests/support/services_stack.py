"""Services as processes under test. The test does the work of Payment."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from http_answer import http_answer
from kafka_helpers import create_topics, produce, read_all, wait_for

from contracts.events import PaymentRequested, PaymentSettled
from contracts.topics import Topic
from tailpack.local.ports import free_port

PARTITIONS = 3
CARD = "4111111111111111"


def order(order_id: str | None = None, **fields: Any) -> bytes:
    record = {
        "v": 1,
        "order_id": order_id or str(uuid.uuid4()),
        "customer": "ada",
        "merchant": "books",
        "country": "DE",
    }
    return json.dumps({**record, "currency": "EUR", "amount_minor": 1250, "card_number": CARD, **fields}).encode()


def order_without_id(**fields: Any) -> bytes:
    record = json.loads(order(**fields))
    del record["order_id"]
    return json.dumps(record).encode()


def settled(order_id: str, *, accepted: bool) -> bytes:
    record = {
        "v": 1, "payment_id": f"p-{order_id}", "order_id": order_id, "customer": "ada", "merchant": "books",
        "country": "DE", "currency": "EUR", "amount_minor": 1250, "accepted": accepted,
        "decline_reason": None if accepted else "card limit", "risk_score": 0.5,
        "timeline": {"intended_us": 1, "placed_us": 2},
    }  # fmt: skip
    return json.dumps(record).encode()


def shipment(order_id: str) -> bytes:
    record = {
        "v": 1, "shipment_id": f"s-{order_id}", "payment_id": f"p-{order_id}", "order_id": order_id, "customer": "ada",
        "country": "DE", "parcel": "M-1", "carrier": "DHL", "promised_on": "2026-01-02",
        "timeline": {"intended_us": 1, "placed_us": 2},
    }  # fmt: skip
    return json.dumps(record).encode()


@dataclass
class Stack:
    """Services under test. The test starts, kills and stops their processes."""

    kafka: str
    namespace: str
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    """Settings of every service without the prefix TAILPACK_, in addition to those that the stack sets."""
    of_service: dict[str, dict[str, str]] = field(default_factory=dict)
    """Settings of single services."""
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    def start(self, *services: str) -> None:
        """Start services; `order@1` is another instance of `order`."""
        for service in services:
            module, _, instance = service.partition("@")
            self.ports[service] = free_port()
            settings = {
                "BOOTSTRAP_SERVERS": self.kafka,
                "NAMESPACE": self.namespace,
                "DATA_DIR": str(self.folder),
                "HTTP_PORT": str(self.ports[service]),
                "PAYMENT_PARTITIONS": str(PARTITIONS),
                "PARTITIONER": "explicit",
                "DEMO": "true",
                "INSTANCE": instance or "0",
                **self.settings,
                **self.of_service.get(service, {}),
            }
            environ = os.environ | {f"TAILPACK_{name}": value for name, value in settings.items()}
            command = [sys.executable, "-m", f"services.{module}"]
            log = (self.folder / f"{service}.log").open("ab")
            self.processes[service] = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
            log.close()
        for service in services:
            wait_for(
                lambda service=service: self.get(service, "/healthz")[0] == 200, f"{service} is healthy", deadline_s=40
            )

    def get(self, service: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        """Return status code and JSON of an HTTP call. The code is 0 if no process listens."""
        code, text = http_answer(f"http://127.0.0.1:{self.ports[service]}{path}", body, headers)
        return code, json.loads(text) if code else None

    def place(self, body: bytes, **headers: str) -> tuple[int, Any]:
        return self.get("order", "/orders", body, **{"Content-Type": "application/json"} | headers)

    def status(self, order_id: str) -> str | None:
        code, status = self.get("order", f"/orders/{order_id}")
        return status["status"] if code == 200 else None

    def kill(self, service: str) -> None:
        self.processes[service].kill()
        self.processes.pop(service).wait(10)

    def stop(self, service: str, number: int = signal.SIGTERM) -> int:
        self.processes[service].send_signal(number)
        return self.processes.pop(service).wait(25)

    def requests(self) -> list[PaymentRequested]:
        return self.records(Topic.PAYMENTS_REQUESTED, PaymentRequested)

    def records(self, topic: Topic, kind: type[Any]) -> list[Any]:
        return [
            msgspec.json.decode(record.value(), type=kind) for record in read_all(self.kafka, self.namespace, topic)
        ]

    def settle(self, request: PaymentRequested, *, accepted: bool = True) -> None:
        """Settle a request as Payment would."""
        settled = PaymentSettled(
            payment_id=f"p-{request.order_id}", order_id=request.order_id, customer=request.customer,
            merchant=request.merchant, country=request.country, currency=request.currency,
            amount_minor=request.amount_minor, accepted=accepted, decline_reason=None if accepted else "card limit",
            risk_score=0.5, timeline=msgspec.structs.replace(request.timeline, received_us=1, done_us=2),
        )  # fmt: skip
        value = msgspec.json.encode(settled)
        produce(self.kafka, self.namespace, Topic.PAYMENTS_SETTLED, [value], key=request.order_id.encode())


@contextlib.contextmanager
def a_stack(kafka: str, namespace: str, folder: Path) -> Iterator[Stack]:
    """Create the topics and yield a stack. At the end all running services are killed."""
    create_topics(kafka, namespace, PARTITIONS)
    stack = Stack(kafka, namespace, folder)
    try:
        yield stack
    finally:
        for process in stack.processes.values():
            process.kill()
            process.wait(10)
