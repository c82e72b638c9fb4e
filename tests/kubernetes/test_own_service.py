"""docs/tutorials/own-consumer.md as pods on a real control plane. The test applies the folder of the guide."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_helpers import wait_for
from own_service import Reader
from pods import Deployed, kubectl

from bench.cluster import MANIFESTS


@pytest.fixture
def kafka(deployed: Deployed) -> str:
    """An existing Kafka in the namespace of the guide."""
    kubectl("create", "namespace", deployed.name)
    deployed.kubectl("apply", "--filename", str(MANIFESTS / "overlays" / "kind" / "kafka.yaml"))
    deployed.wait_ready(kafka=1)
    return deployed.broker


@pytest.fixture
def reader(deployed: Deployed, kafka: str, greeter_image: str, tmp_path: Path) -> Iterator[Reader]:
    """The guide with a third of the load, in a namespace for the test."""
    there = {"namespace: greeters": f"namespace: {deployed.name}", "-n greeters": f"-n {deployed.name}"}
    follows = Reader(tmp_path, kafka, "kubernetes", **there, **{"range(5000)": "range(1500)"})
    shutil.copytree(MANIFESTS / "base", tmp_path / "pods" / "base")
    yield follows
    follows.close()


def test_a_custom_consumer_is_scaled_as_pods(reader: Reader, deployed: Deployed) -> None:
    apply, rollout, *forward = reader.differs
    reader.topics()
    for line in (apply, rollout):
        done = reader.type(line)
        assert done.returncode == 0, done.stderr
    wait_for(lambda: deployed.get("lease", "autoscaler")["spec"].get("holderIdentity"), "one leads")
    reader.scaled(reader.start("\n".join(forward)))

    def planned() -> list[dict[str, Any]]:
        """Return the pods once they are exactly the replicas of the plan in force."""
        plan, replicas = set(reader.plan()), deployed.pods("payment")
        names = {one["metadata"]["annotations"]["tailpack/replica"] for one in replicas}
        return replicas if names == plan else []

    replicas = wait_for(planned, "the pods are those of the plan")
    logs = [deployed.kubectl("logs", one["metadata"]["name"]) for one in replicas]
    assert any(b"hello name-" in log for log in logs)
    assert {one["metadata"]["labels"]["app"] for one in deployed.pods()} == {"kafka", "autoscaler", "payment"}
