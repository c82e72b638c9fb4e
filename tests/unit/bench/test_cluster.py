"""A run on a cluster rejects invalid input before it contacts the cluster, and reports obstacles."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import BenchError, cluster
from bench.benchmarks.cluster import ClusterRuns, run_on_cluster
from bench.cluster import Cluster, Namespace
from bench.scenario import load_scenario


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (replace(load_scenario("w1"), name="mine"), "mine: .*tailpack list scenarios"),
        (load_scenario("w1", {"payment.runtime": "cooperative-sticky"}), "w1: .*cooperative-sticky"),
    ],
)
def test_a_scenario_that_pods_cannot_run_is_rejected(scenario: object, why: str, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=why):
        run_on_cluster(scenario, Cluster(), tmp_path, lambda _: None)  # type: ignore[arg-type]


def test_every_scenario_runs_under_every_policy_with_every_seed() -> None:
    cases = ClusterRuns(scenarios=["w1", "Taxi"], policy=["linear", "static-3"], seeds=2).cases()
    assert cases[:4] == ["w1 linear 1", "w1 static-3 1", "taxi linear 1", "taxi static-3 1"]
    assert len(set(cases)) == 8


def pod(policy: str = "Always", **state: Any) -> dict[str, Any]:
    about = {"name": "order-x", "uid": "", "resourceVersion": "", "creationTimestamp": ""}
    ready = {"type": "Ready", "status": str(policy == "OnFailure")}
    status = {"containerStatuses": [{"name": "one", "state": {}} | state], "conditions": [ready]}
    return {"metadata": about, "spec": {"restartPolicy": policy}, "status": status}


OWNERS = "replicasets,statefulsets,jobs"


def set_of(name: str, count: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"replicas": count}}


RUNS: dict[str, Any] = {"running": {}}
ENDED = {"terminated": {"exitCode": 4, "message": 'first\n{"message": "no Kafka"}\n'}}


@pytest.mark.parametrize(
    ("pods", "events", "obstacle"),
    [
        ([pod(lastState=ENDED)], [], "pod order-x ended with exit status 4: no Kafka"),
        ([pod("OnFailure", lastState=ENDED, state=RUNS)], [], "pod order-x ended with exit status 4: no Kafka"),
        ([pod(state={"waiting": {"reason": "ErrImagePull", "message": "why"}})], [], "pod order-x: ErrImagePull: why"),
        ([], [{"involvedObject": {"name": "order-1"}, "message": "exceeded quota"}], "exceeded quota"),
    ],
)
def test_a_run_without_progress_fails_and_names_the_obstacle(
    pods: list[Any], events: list[Any], obstacle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = {"metadata": {"name": "order"}, "spec": {"replicas": 1}, "status": {}}
    found = {"pods": pods, "events": events, "deployments": [order], OWNERS: [set_of("order-1", 1)]}
    place = Namespace(Cluster(), "test")
    monkeypatch.setattr(place, "get", lambda what, *_: found.get(what, []))
    monkeypatch.setattr(cluster, "STUCK_TIMEOUT_S", 0.0)
    with pytest.raises(BenchError, match=re.escape(f"order; {obstacle}")):
        place.wait_until_ready(0, lambda _: None)
    order["status"] = {"readyReplicas": 1}
    place.wait_until_ready(0, lambda _: None)


def test_an_obstacle_that_has_gone_no_longer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """For 50 s the pod has no node, and its ReplicaSet had failed to create it; for 50 s more it starts."""
    order, now_s = {"metadata": {"name": "order"}, "spec": {"replicas": 1}, "status": {}}, [0.0]
    waiting, starting = pod(), pod(state=RUNS)
    waiting["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    for one in (waiting, starting):
        one["metadata"]["ownerReferences"] = [{"name": "order-1"}]

    def get(what: str, *_: str) -> list[Any]:
        order["status"] = {"readyReplicas": int(now_s[0] >= 100.0)}
        found = {
            "deployments": [order],
            OWNERS: [set_of("order-1", 1)],
            "pods": [starting if now_s[0] > 50 else waiting],
        }
        return found.get(what, [{"involvedObject": {"name": "order-1"}, "message": "no account"}] * (what == "events"))

    place, announced = Namespace(Cluster(), "test"), list[str]()
    monkeypatch.setattr(place, "get", get)
    monkeypatch.setattr(cluster, "monotonic_s", lambda: now_s[0])
    monkeypatch.setattr(cluster.time, "sleep", lambda pause_s: now_s.__setitem__(0, now_s[0] + pause_s))
    place.wait_until_ready(0, announced.append)
    assert set(announced) == {"waiting for order; pod order-x: Unschedulable", "waiting for order"}
