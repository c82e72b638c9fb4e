"""A load that several processes share: every event is sent once."""

import os
import signal
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from kafka_helpers import create_topics, read_all, wait_for

from bench.benchmark import all_exist
from bench.scenario import load_scenario
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import PaymentRequested
from contracts.topics import Topic
from loadgen.orders import Orders
from loadgen.result import READY_FILE, GeneratorResult
from loadgen.schedule import Spacing, Split
from loadgen.spec import LoadSpec, Topology
from tailpack.local.stack import Stack

pytestmark = pytest.mark.kafka
# W is long, so that a busy machine makes no load invalid.
SPEC = LoadSpec(
    topology=Topology.PAYMENT_ONLY, workload="smoke", spacing=Spacing.BURST, split=Split.EVEN, seed=1, duration_s=6,
    partitions=5, latency_target_s=60,
)  # fmt: skip
EVENTS = 5 * 10 + 60


def check_every_event(kafka: str, namespace: str) -> None:
    """Every event of the schedule came once, in its partition and with its intended time."""
    schedule, orders = SPEC.schedule(), Orders(namespace, SPEC.seed)
    records = read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED)
    found = {record.key().decode(): record for record in records}
    assert len(records) == len(found) == EVENTS
    intended = Counter()
    for number in range(EVENTS):
        record = found[orders.order_id(number)]
        assert record.partition() == schedule.partition[number]
        at_us = msgspec.json.decode(record.value(), type=PaymentRequested).timeline.intended_us
        intended[at_us - int(schedule.offset_us[number])] += 1
    assert len(intended) == 1, "all count from one second 0"


@pytest.mark.parametrize("interrupted", [False, True])
def test_two_processes_send_every_event_once_and_save_their_counts_if_stopped(
    kafka: str, namespace: str, tmp_path: Path, interrupted: bool
) -> None:
    create_topics(kafka, namespace, SPEC.partitions)
    scenario = load_scenario("smoke", {"topology": "payment-only", "partitions": SPEC.partitions})
    stack = Stack(scenario, Connection(bootstrap_servers=kafka, namespace=namespace), tmp_path)
    try:
        stack.start(SPEC, load_workers=2, only_load=True)
        parts = stack.load_parts
        wait_for(lambda: all_exist(tmp_path, READY_FILE, 2), "both are ready", deadline_s=60)
        stack.start_file.write_text(str(now_us() + 1_000_000))
        if interrupted:
            wait_for(lambda: read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED), "the load has begun", deadline_s=60)
            os.kill(parts[0].pid, signal.SIGINT)
        wait_for(lambda: all(one.exit_status is not None for one in parts), "the load is sent", deadline_s=60)
    finally:
        stack.stop()
    assert [one.exit_status for one in parts] == [int(interrupted), 0]
    assert stack.processes() == {}
    result = GeneratorResult.load(tmp_path, 2)
    assert (result.parts, result.scheduled, result.interrupted) == (2, EVENTS, interrupted)
    assert (result.complete, result.valid) == (not interrupted, not interrupted)
    if interrupted:
        assert 0 < result.acknowledged == result.produced < EVENTS
    else:
        check_every_event(kafka, namespace)
