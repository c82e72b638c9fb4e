"""Pods of a consumer that knows nothing of plans, in a group that the autoscaler leads."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from foreign_group import ForeignGroup, planned
from kafka_helpers import wait_for
from pod_nursery import DEPLOYMENT, Pods
from pods import kubectl

from autoscaler.live.launchers.pods import pod_of
from bench.cluster import MANIFESTS, Cluster, Namespace
from contracts.clock import monotonic_s
from contracts.journal import ReplicaChange

FOLLOW_EVERY_S = 0.5


@dataclass
class PodGroup(ForeignGroup):
    """Consumers in pods. Each prints its log, which is followed because it ends with the pod."""

    nursery: Any = None
    _pods_s: float = 0.0

    def pods(self) -> dict[str, str]:
        """Return replica → its running pod."""
        found = [pod for raw in self.nursery.pods() if (pod := pod_of(raw)).replica and pod.running]
        for pod in found:
            if pod.name not in self.processes:
                command = ["kubectl", "--namespace", self.nursery.namespace, "logs", "--follow", pod.name]
                with (self.events / f"{pod.replica}.{pod.name}").open("wb") as log:
                    self.processes[pod.name] = subprocess.Popen(command, stdout=log)
        return {pod.replica: pod.name for pod in found if not pod.is_terminating}

    def logs(self) -> dict[str, list[tuple[int, str, list[int]]]]:
        if monotonic_s() - self._pods_s > FOLLOW_EVERY_S:
            self.pods()
            self._pods_s = monotonic_s()
        return super().logs()

    def owners(self, pids: Mapping[str, int] | None = None) -> dict[int, str]:
        return super().owners(self.pods())


@pytest.fixture
def group(nursery: Pods, namespace: str, tmp_path: Path) -> PodGroup:
    """Consumers whose client ids are all alike, and a broker next to them."""
    nursery.kubectl("apply", "--filename", str(MANIFESTS / "overlays" / "kind" / "kafka.yaml"))
    place = Namespace(Cluster(), nursery.namespace)
    broker = wait_for(lambda: next(filter(lambda one: one.ready, map(pod_of, place.pods("kafka"))), None), "a broker")
    group = PodGroup(
        f"{broker.address}:9092", f"{namespace}-shop", tmp_path / "group", client_id="rdkafka", work_s=0.005,
        session_ms=240_000, nursery=nursery,
    )  # fmt: skip
    code = Path(group.command()[1]).read_text(encoding="utf-8")
    nursery.command = ["python", "-c", code, *group.command()[2:], "log_level=0"]
    nursery.memory = "128Mi"
    nursery.apply({})
    return group


def test_pods_of_plain_consumers_are_added_replaced_and_drained_without_a_lost_event(
    group: PodGroup, nursery: Pods, namespace: str
) -> None:
    settings = {
        "LAUNCHER": "kubernetes", "KUBERNETES_NAMESPACE": nursery.namespace, "KUBERNETES_DEPLOYMENT": DEPLOYMENT,
        "POLICY": "tail-aware", "INITIAL_REPLICAS": "1", "POLICY_OPTIONS": '{"keep_s": 0}',
    }  # fmt: skip
    with group, planned(group, namespace, "led", **settings) as auto:
        auto.wait_for_plan(1, deadline_s=120)
        group.load()
        wait_for(lambda: {*group.owners().values()} >= {"shop-0", "shop-1"}, "two consumers that own partitions")
        dead = group.pods()["shop-1"]
        # Without a LeaveGroup in its name, the group would wait for the session of four minutes.
        kubectl("--namespace", nursery.namespace, "delete", "pod", dead, "--grace-period=0", "--force")
        wait_for(lambda: dead not in group.pods().values(), "its end")
        in_force = lambda: group.owners() == auto.plans()[-1].assignment  # noqa: E731
        wait_for(in_force, "owners by the plan after its death", deadline_s=120, every_s=0.5)
        auto.command("pause", "--act", "off", "--for", "1h")
        auto.acting("Off")
        pods, ticks = group.pods(), len(auto.ticks())
        wait_for(lambda: len(auto.ticks()) > ticks + 8, "a time longer than the leader's session")
        assert (in_force(), group.pods()) == (True, pods)
        auto.command("resume", "--act", "on")
        auto.acting("On")
        group.served()
        wait_for(lambda: len(group.pods()) == 1, "the end of the others", every_s=0.5)
        wait_for(in_force, "owners by the last plan", every_s=0.5)
        assert group.events_after_revocation() == 0
        ended = {entry.replica: entry.change for entry in auto.journal() if hasattr(entry, "change")}
        before = {name: auto.changes(name)[-2].change for name, last in ended.items() if last is ReplicaChange.LEFT}
        assert ReplicaChange.DRAINED in before.values()
        served = (ReplicaChange.READY, ReplicaChange.ADOPTED)  # others ended before they were ready
        assert not [name for name, change in before.items() if change in served]
