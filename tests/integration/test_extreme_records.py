"""Records with extreme values in each field end neither the autoscaler, nor KEDA's scaler, nor a replica."""

import json
import signal
import urllib.request
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from extremes import extremes, full_plan, full_report
from kafka_helpers import create_topics, produce, wait_for
from live_autoscaler import Autoscaler

from autoscaler.keda.__main__ import PlanFollower
from autoscaler.live.launchers.processes import read_pid_files
from contracts.connection import Connection
from contracts.plan import plan_key
from contracts.topics import PAYMENT_GROUP, Topic

pytestmark = pytest.mark.kafka


def numbered(plans: Iterable[bytes]) -> list[bytes]:
    """Return plans that are each newer than the last one, those with an extreme epoch at the end."""
    plain = sorted(map(json.loads, plans), key=lambda plan: plan["epoch"] != 1)
    epochs = (number if plan["epoch"] == 1 else plan["epoch"] for number, plan in enumerate(plain, 2))
    return [json.dumps(plan | {"epoch": epoch}).encode() for plan, epoch in zip(plain, epochs, strict=True)]


@pytest.mark.timeout(300)
def test_extreme_control_records_are_survived_by_autoscaler_scaler_and_replicas(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    create_topics(kafka, namespace, 4)
    connection = Connection(bootstrap_servers=kafka, namespace=namespace)
    group, topic = PAYMENT_GROUP.group_in(namespace), PAYMENT_GROUP.topic_in(namespace)
    follower = PlanFollower(connection, PAYMENT_GROUP, on_plan=lambda _: None, report_problem=lambda _: None)
    more = {"TAILPACK_MAX_REPLICAS": "2"}
    with (
        closing(follower),
        Autoscaler(kafka, namespace, tmp_path, replica_module="services.payment", more=more) as autoscaler,
    ):
        follower.start()
        autoscaler.wait_for_plan(1)
        file = wait_for(lambda: {name: file for name, file, _ in read_pid_files(tmp_path)}["payment-0"], "its pid file")
        report = full_report("payment-0", file.pid, file.incarnation, group)
        produce(kafka, namespace, Topic.PROGRESS, extremes(report))
        plans = numbered(extremes(full_plan(group, topic)))
        produce(kafka, namespace, Topic.PLANS, plans, key=plan_key(group, topic))
        autoscaler.signal(signal.SIGTERM)
        assert autoscaler.ended()[0] == 0
        autoscaler.start()
        autoscaler.wait_for_tick(lambda tick: tick.partitions, "the next autoscaler's observation")
        psutil.Process(autoscaler.pids()["payment-1"]).kill()
        wait_for(lambda: len(autoscaler.written()) > 2, "the plans of the death and of the return")
        page = autoscaler.get("/plan")["in_force"]
        assert (set(page["replicas"]), len(page["assignment"])) == ({"payment-0", "payment-1"}, 4)
        wait_for(lambda: follower.plans.newest and follower.plans.newest.epoch == page["epoch"], "the scaler reads on")
        for address in autoscaler.get("/targets")[0]["targets"]:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
                assert answer.status == 200
        assert autoscaler.get("/healthz")["status"] in ("ok", "degraded")
