"""Payment, Shipment and Notification on a real Kafka with one autoscaler: forecasts of one group scale the next."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest
from kafka_helpers import DEADLINE_S, create_topics, read_all, wait_for
from payment_load import PaymentLoad

from autoscaler.live.launchers.processes import read_pid_files
from contracts.connection import Connection
from contracts.plan import PlanRecord
from contracts.topics import ScaledGroup, Topic
from tailpack.local.topics import create_control_topics

pytestmark = pytest.mark.kafka
COMPILED_S = 300.0
"""In a new checkout a policy is compiled before the first plan."""
GROUPS = {
    "payment": ("services.payment", Topic.PAYMENTS_REQUESTED, 0.6),
    "shipment": ("services.shipment.replica", Topic.PAYMENTS_SETTLED, 0.2),
    "notification": ("services.notification.replica", Topic.SHIPMENTS_SCHEDULED, 0.2),
}
BEHIND = tuple(GROUPS)[1:]
STAGE = """
bootstrap_servers = "{kafka}"
namespace = "{namespace}"
topic = "{topic}"
group = "{namespace}-group"
replica_module = "{module}"
replica_prefix = "{prefix}"
state_dir = "{folder}/{prefix}"
policy = "tail-aware"
latency_target_s = {target_s}
percentile = 0.999
service_time_s = 0.01
taken_within_s = 120
guarantee = "exactly_once"
"""


def stages(kafka: str, namespace: str, folder: Path, **more: str) -> list[str]:
    """Write the files of the groups; return their paths."""
    paths = []
    for prefix, (module, topic, target_s) in GROUPS.items():
        space = f"{namespace}.{prefix}" if prefix in BEHIND else namespace
        text = STAGE.format(
            kafka=kafka, namespace=space, topic=f"{namespace}.{topic}", module=module, prefix=prefix, folder=folder,
            target_s=target_s,
        )  # fmt: skip
        path = folder / f"{prefix}.toml"
        path.write_text(text.replace('"tail-aware"', f'"{more.get(prefix, "tail-aware")}"'), encoding="utf-8")
        paths.append(str(path))
    return paths


def autoscale(paths: list[str]) -> "subprocess.Popen[str]":
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
    return subprocess.Popen(
        [sys.executable, "-m", "autoscaler.live", *paths], env=environ, stderr=subprocess.PIPE, text=True
    )


def plans(kafka: str, namespace: str) -> list[PlanRecord]:
    records = read_all(kafka, namespace, Topic.PLANS)
    return [msgspec.json.decode(record.value() or b"", type=PlanRecord) for record in records]


def orders(kafka: str, namespace: str, topic: Topic) -> list[str]:
    """Return the orders of all records, repeats included."""
    return sorted(json.loads(one.value() or b"")["order_id"] for one in read_all(kafka, namespace, topic))


@pytest.mark.timeout(600)
def test_three_groups_grow_with_the_load_of_the_first_and_every_order_is_notified_once(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    create_topics(kafka, namespace, 4)
    files = stages(kafka, namespace, tmp_path)
    spaces = [namespace, *(f"{namespace}.{prefix}" for prefix in BEHIND)]
    for space in spaces[1:]:
        create_control_topics(Connection(bootstrap_servers=kafka, namespace=space), ScaledGroup(), 0)
    process = autoscale(files)
    try:
        for space in spaces:
            wait_for(lambda at=space: plans(kafka, at), f"a first plan in {space}", deadline_s=COMPILED_S)
        with PaymentLoad(kafka, namespace, rate=140, partitions=4) as load:
            for space in spaces:
                grown = wait_for(
                    lambda at=space: [one for one in plans(kafka, at) if len(one.replicas) > 1], f"more in {space}"
                )
                assert grown[0].assignment is not None
        accepted = wait_for(
            lambda: not load.unserved() and sorted({one.order_id for one in load.settled() if one.accepted}),
            "every payment served",
        )
        for topic in (Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT):
            wait_for(
                lambda at=topic: orders(kafka, namespace, at) == accepted, f"one {topic} for each accepted payment"
            )
        for prefix, space in zip(BEHIND, spaces[1:], strict=True):
            assert {name.partition("-")[0] for plan in plans(kafka, space) for name in plan.replicas} == {prefix}
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, errors
        assert not [entry for prefix in GROUPS for entry in read_pid_files(tmp_path / prefix)]
    finally:
        process.kill()
        for prefix in GROUPS:
            for _, entry, _ in read_pid_files(tmp_path / prefix):
                if psutil.pid_exists(entry.pid):
                    psutil.Process(entry.pid).kill()


def test_groups_that_form_no_chain_are_rejected(tmp_path: Path) -> None:
    first, second, _ = stages("127.0.0.1:1", "run", tmp_path, shipment="linear")
    refused = autoscale([first, second])
    assert "linear" in refused.communicate(timeout=DEADLINE_S)[1]
    twice = autoscale([first, first])
    errors = twice.communicate(timeout=DEADLINE_S)[1]
    assert (refused.returncode, twice.returncode) == (2, 2)
    assert [line.split(" = ")[0].split()[-1] for line in errors.splitlines()] == [
        "state_dir", "replica_prefix", "namespace",
    ]  # fmt: skip
