"""Orders by POST /orders: each is sent once, with its intended time, even if the service answers slowly."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from kafka_helpers import wait_for
from services_stack import PARTITIONS, Stack, a_stack

from contracts.topics import Topic
from loadgen.faults import affected_events
from loadgen.orders import Orders
from loadgen.result import GeneratorResult
from loadgen.schedule import Spacing, Split
from loadgen.spec import LoadSpec, Topology
from services.common.records import effect_id
from tailpack.local.ports import free_port

pytestmark = pytest.mark.kafka
SPEC = LoadSpec(
    topology=Topology.PIPELINE, workload="smoke", spacing=Spacing.BURST, split=Split.EVEN, seed=1, duration_s=6,
    partitions=PARTITIONS, latency_target_s=0.5, invalid_share=0.1, faults=("duplicate 0-6 0.2", "poison 2-3 1"),
)  # fmt: skip


@pytest.fixture
def stack(kafka: str, namespace: str, tmp_path: Path) -> Iterator[Stack]:
    with a_stack(kafka, namespace, tmp_path) as running:
        yield running


def load(stack: Stack, url: str, spec: LoadSpec = SPEC, **more: str) -> "subprocess.Popen[str]":
    (stack.folder / "load.json").write_bytes(msgspec.json.encode(spec))
    settings = {
        "BOOTSTRAP_SERVERS": stack.kafka, "NAMESPACE": stack.namespace, "LOAD_FILE": str(stack.folder / "load.json"),
        "OUT_DIR": str(stack.folder), "ORDER_URL": url, **more,
    }  # fmt: skip
    environ = os.environ | {f"TAILPACK_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "loadgen.drivers"]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_every_order_arrives_once_with_its_intended_time_although_the_service_stalls(stack: Stack) -> None:
    stack.start("order")
    running = load(stack, f"http://127.0.0.1:{stack.ports['order']}")
    wait_for(lambda: len(stack.requests()) > 5, "the load has begun", deadline_s=60)
    order = stack.processes["order"]
    order.send_signal(signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(2.5)
    order.send_signal(signal.SIGCONT)
    output = running.communicate(timeout=90)[0]
    assert running.returncode == 0, output

    result, schedule, orders = (
        GeneratorResult.load(stack.folder),
        SPEC.schedule(),
        Orders(stack.namespace, SPEC.seed, 0.1),
    )
    poison = affected_events(SPEC.faults, "poison", schedule.offset_us, SPEC.seed)
    wrong = {one for one in range(len(schedule)) if poison[one] or orders.flaw(one) is not None}
    assert (result.acknowledged, result.failed) == (result.scheduled, 0)
    assert result.invalid_orders == len(wrong) > 1
    assert result.repeated > 5

    wait_for(lambda: len(stack.requests()) == len(schedule) - len(wrong), "all that are right", deadline_s=30)
    found = {request.order_id: request.timeline for request in stack.requests()}
    due = {
        effect_id(orders.order_id(one), "idempotency-key"): result.started_us + int(schedule.offset_us[one])
        for one in set(range(len(schedule))) - wrong
    }
    assert {one: timeline.intended_us for one, timeline in found.items()} == due
    held_up = max(timeline.placed_us - timeline.intended_us for timeline in found.values())
    assert held_up > 1_000_000, "what waited for the service counts from when it was due"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (SPEC, "no Order service accepts orders at http://127.0.0.1:{port}"),
        (
            msgspec.structs.replace(SPEC, topology=Topology.PAYMENT_ONLY, faults=(), invalid_share=0.0),
            "TAILPACK_ORDER_URL: a payment-only load has no orders",
        ),
    ],
)
def test_a_load_that_cannot_start_prints_one_line(stack: Stack, spec: LoadSpec, expected: str) -> None:
    port = free_port()
    running = load(stack, f"http://127.0.0.1:{port}", spec, CONNECT_DEADLINE_S="2")
    output = running.communicate(timeout=60)[0]
    assert running.returncode == 1
    assert expected.format(port=port) in output
    assert "Traceback" not in output


def test_a_service_that_requires_a_token_receives_it(stack: Stack) -> None:
    token = stack.folder / "token"
    token.write_text("a-token-of-twenty-letters")
    stack.of_service["order"] = {"API_TOKEN_FILE": str(token)}
    stack.start("order")
    url = f"http://127.0.0.1:{stack.ports['order']}"
    refused = load(stack, url, CONNECT_DEADLINE_S="5")
    assert "set TAILPACK_ORDER_TOKEN_FILE" in refused.communicate(timeout=60)[0]
    running = load(stack, url, msgspec.structs.replace(SPEC, duration_s=1, faults=()), ORDER_TOKEN_FILE=str(token))
    output = running.communicate(timeout=60)[0]
    assert running.returncode == 0, output
    assert len(stack.records(Topic.ORDERS_PLACED, dict)) > 5
