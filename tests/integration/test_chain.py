"""Payment and Shipment on a real Kafka, one autoscaler for both: the second is scaled by what the first will send."""

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

from autoscaler.live.launchers.processes import remembered
from bench.live_chain import LiveChain
from bench.scenario import load_scenario
from contracts.connection import Connection
from contracts.events import ShipmentScheduled
from contracts.plan import PlanRecord
from contracts.topics import ScaledGroup, Topic
from tailpack.local.topics import create_control_topics

pytestmark = pytest.mark.kafka
COMPILED_S = 300.0
"""In a new checkout a policy is compiled before the first plan."""
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
"""


def stages(kafka: str, namespace: str, folder: Path, **more: str) -> list[str]:
    """Write the files of both; return their paths."""
    told = {
        "payment": ("services.payment", namespace, Topic.PAYMENTS_REQUESTED, 0.8),
        "shipment": ("services.shipment.replica", f"{namespace}.shipment", Topic.PAYMENTS_SETTLED, 0.2),
    }
    paths = []
    for prefix, (module, space, topic, target_s) in told.items():
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


@pytest.mark.timeout(600)
def test_both_groups_grow_with_the_load_of_the_first(kafka: str, namespace: str, tmp_path: Path) -> None:
    create_topics(kafka, namespace, 4)
    behind = Connection(bootstrap_servers=kafka, namespace=f"{namespace}.shipment")
    create_control_topics(behind, ScaledGroup(topic=f"{namespace}.{Topic.PAYMENTS_SETTLED}"), 0)
    process = autoscale(stages(kafka, namespace, tmp_path))
    spaces = (namespace, behind.namespace)
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
            lambda: not load.unserved() and {one.order_id for one in load.settled() if one.accepted},
            "every payment served",
        )

        def shipped() -> set[str]:
            records = read_all(kafka, namespace, Topic.SHIPMENTS_SCHEDULED)
            return {msgspec.json.decode(one.value() or b"", type=ShipmentScheduled).order_id for one in records}

        wait_for(lambda: shipped() == accepted, "a shipment for every accepted payment, and for no other")
        assert {name.partition("-")[0] for plan in plans(kafka, spaces[1]) for name in plan.replicas} == {"shipment"}
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, said
        assert not [entry for prefix in ("payment", "shipment") for entry in remembered(tmp_path / prefix)]
    finally:
        process.kill()
        for prefix in ("payment", "shipment"):
            for _, entry, _ in remembered(tmp_path / prefix):
                if psutil.pid_exists(entry.pid):
                    psutil.Process(entry.pid).kill()


def test_what_cannot_be_a_chain_is_refused(tmp_path: Path) -> None:
    first, second = stages("127.0.0.1:1", "run", tmp_path, shipment="linear")
    refused = autoscale([first, second])
    assert "linear" in refused.communicate(timeout=DEADLINE_S)[1]
    twice = autoscale([first, first])
    said = twice.communicate(timeout=DEADLINE_S)[1]
    assert (refused.returncode, twice.returncode) == (2, 2)
    assert [line.split(" = ")[0].split()[-1] for line in said.splitlines()] == [
        "state_dir", "replica_prefix", "namespace",
    ]  # fmt: skip


@pytest.mark.timeout(600)
def test_a_short_run_each_stage_by_itself_is_measured_to_its_last_event(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    scenario = load_scenario("chain-demo", {"duration_s": 5, "chain.coordinated": False})
    connection = Connection(bootstrap_servers=kafka, namespace=namespace)
    behind = Connection(bootstrap_servers=kafka, namespace=f"{namespace}.shipment")
    create_topics(kafka, namespace, scenario.payment.partitions)
    create_control_topics(behind, ScaledGroup(), 0)
    found, sent = LiveChain(scenario, connection, behind.namespace, tmp_path).run(lambda said: None)
    payment, shipment = found.stages
    assert found.events == payment.events == sent.acknowledged == sent.scheduled
    assert 0.9 * payment.events < shipment.events <= payment.events, "all but the few that are declined"
    assert found.max_s is not None
    assert payment.max_s is not None
    assert found.max_s >= payment.max_s
    assert found.replica_minutes >= 2 * 5 / 60 * 0.9
