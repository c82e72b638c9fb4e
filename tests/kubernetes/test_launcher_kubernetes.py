"""The launcher of pods passes the tests for all launchers on a real control plane."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka_helpers import wait_for
from launcher_contract import LauncherContract, World
from pod_nursery import DEPLOYMENT, Pods
from pods import kubectl

import autoscaler.live.launchers.kubernetes
from autoscaler.live.launcher import LauncherError
from autoscaler.live.launchers.pods import DELETION_COST, LOWEST_COST
from contracts.journal import ReplicaChange
from contracts.progress import ReplicaState


class TestKubernetes(LauncherContract): ...


def test_exactly_the_released_replica_is_deleted(nursery: Pods) -> None:
    world = World(nursery, nursery.launcher())
    names = [f"payment-{number}" for number in range(3)]
    world.scaler.request(names)
    for name in names:
        world.wait_for_report(name)
        world.until(ReplicaChange.READY, name)
    before = {name: nursery.named(name)[0]["metadata"]["uid"] for name in names}
    world.scaler.release("payment-1")
    world.wait_for_report("payment-1", state=ReplicaState.DRAINED)
    world.until(ReplicaChange.LEFT, "payment-1")
    wait_for(lambda: len(nursery.pods()) == 2, "one pod less")
    assert {name: nursery.named(name)[0]["metadata"]["uid"] for name in ("payment-0", "payment-2")} == {
        name: before[name] for name in ("payment-0", "payment-2")
    }


def test_by_plan_only_the_count_is_published_and_a_drained_pod_is_deleted_even_without_an_hpa(
    nursery: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test follows the count manually like an HPA: late, with a surplus pod, and finally not at all."""
    nursery.by_plan = True
    world = World(nursery, nursery.launcher())
    world.scaler.request(["payment-0", "payment-1"])
    wait_for(lambda: world.scaler.launcher.wanted == 2, "the new count")
    assert nursery.pods() == []
    follow(nursery, 3)
    for name in ("payment-0", "payment-1"):
        world.wait_for_report(name)
        world.until(ReplicaChange.READY, name)
    kept = nursery.named("payment-0")[0]["metadata"]["uid"]
    assert len(nursery.pods()) == 3

    world.scaler.release("payment-1")
    world.wait_for_report("payment-1", state=ReplicaState.DRAINED)
    world.until(ReplicaChange.DRAINED, "payment-1")
    wait_for(lambda: world.scaler.launcher.wanted == 1, "the lower count")
    assert nursery.named("payment-1")[0]["metadata"]["annotations"][DELETION_COST] == LOWEST_COST
    follow(nursery, 1)
    assert world.until(ReplicaChange.LEFT, "payment-1").detail == "exit status 0"
    wait_for(lambda: [one["metadata"]["uid"] for one in nursery.pods()] == [kept], "the one too many goes as well")

    world.changes.clear()
    follow(nursery, 2)
    world.scaler.request(["payment-1"])
    first = world.wait_for_report("payment-1")
    world.until(ReplicaChange.READY, "payment-1")
    monkeypatch.setattr(autoscaler.live.launchers.kubernetes, "HPA_DELETION_TIMEOUT_S", 0.0)
    world.scaler.release("payment-1")
    world.wait_for_report("payment-1", state=ReplicaState.DRAINED)
    assert world.until(ReplicaChange.LEFT, "payment-1").detail == "exit status 0"
    world.scaler.request(["payment-1"])
    wait_for(lambda: world.wait_for_report("payment-1").incarnation != first.incarnation, "a new pod has its name")
    assert nursery.named("payment-0")[0]["metadata"]["uid"] == kept
    assert world.scaler.evictions == []


def follow(nursery: Pods, count: int) -> None:
    nursery.kubectl("scale", "deployment", DEPLOYMENT, f"--replicas={count}")


def test_a_missing_image_is_reported_and_waited_for(nursery: Pods) -> None:
    nursery.image = "tailpack:never-built"
    launcher = nursery.launcher()
    instance = launcher.start("payment-0")
    wait_for(lambda: "ErrImageNeverPull" in instance.pending_reason, "what keeps it")
    assert "ErrImageNeverPull" in wait_for(lambda: launcher.problem, "the problem is reported")
    assert instance.exit() is None


def test_a_deployment_whose_pods_would_start_without_a_name_is_refused(nursery: Pods) -> None:
    nursery.gates = []
    with pytest.raises(LauncherError, match="add schedulingGates: "):
        nursery.launcher()


def test_an_exhausted_quota_is_reported(nursery: Pods) -> None:
    nursery.kubectl("create", "quota", "few", "--hard=pods=1")
    launcher = nursery.launcher()
    launcher.start("payment-0")
    instance = launcher.start("payment-1")
    wait_for(
        lambda: "exceeded quota" in instance.pending_reason or "exceeded quota" in launcher.problem,
        "the problem is reported",
    )


def test_a_missing_right_is_reported_with_its_verb(nursery: Pods, tmp_path: Path) -> None:
    nursery.launcher().close()
    nursery.kubectl("create", "serviceaccount", "small")
    nursery.kubectl("create", "role", "small", "--verb=get", "--resource=deployments.apps")
    nursery.kubectl("create", "rolebinding", "small", "--role=small", f"--serviceaccount={nursery.namespace}:small")
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    config["users"][0]["user"] = {"token": nursery.kubectl("create", "token", "small").strip()}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    ended = _tried(nursery, {"KUBECONFIG": str(tmp_path / "config")})
    assert 'cannot list resource "pods"' in ended
    assert "add this verb to the autoscaler's Role" in ended


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"KUBECONFIG": "/nowhere/config"}, "cannot load /nowhere/config"),
        ({"TAILPACK_KUBERNETES_CONTEXT": "elsewhere"}, "set KUBECONFIG or TAILPACK_KUBERNETES_CONTEXT"),
        ({}, 'deployments.apps "payment" not found; apply infra/k8s to namespace'),
    ],
    ids=["no kubeconfig", "wrong context", "no Deployment"],
)
def test_a_missing_deployment_is_one_sentence(nursery: Pods, environ: dict[str, str], message: str) -> None:
    assert message in _tried(nursery, environ)


def _tried(nursery: Pods, environ: dict[str, str]) -> str:
    """Return the error of a launcher that cannot be created, in a process with `environ`."""
    code = (
        "import os\n"
        "from autoscaler.live.launcher import LauncherError\n"
        "from autoscaler.live.launchers.api import Api\n"
        "from autoscaler.live.launchers.kubernetes import KubernetesLauncher\n"
        "from autoscaler.live.settings import KubernetesSettings\n"
        "context = os.environ.get('TAILPACK_KUBERNETES_CONTEXT', '')\n"
        f"settings = KubernetesSettings(kubernetes_namespace={nursery.namespace!r}, kubernetes_context=context)\n"
        "try: KubernetesLauncher(Api(settings))\n"
        "except LauncherError as failed: print(failed)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
    return done.stdout


def test_a_replica_on_a_drained_node_is_replaced_once_there_is_room(nursery: Pods) -> None:
    world = World(nursery, nursery.launcher())
    world.scaler.request(["payment-0"])
    first = world.wait_for_report()
    world.until(ReplicaChange.READY)
    node = nursery.named("payment-0")[0]["spec"]["nodeName"]
    try:
        kubectl("drain", node, f"--pod-selector=of={nursery.namespace}", "--timeout=60s")
        assert "the autoscaler did not stop it" in world.until(ReplicaChange.LEFT).detail
        assert world.scaler.evictions == [], "it has given everything back"
        world.changes.clear()
        world.until(ReplicaChange.STARTED)
        if len(json.loads(kubectl("get", "nodes", "-o", "json"))["items"]) == 1:
            wait_for(lambda: "unschedulable" in world.launcher.problem, "why it does not start", deadline_s=180)
    finally:
        kubectl("uncordon", node)
    wait_for(lambda: world.wait_for_report().incarnation != first.incarnation, "the report of its successor")
    world.until(ReplicaChange.READY)
    wait_for(lambda: not world.launcher.problem, "the problem has ended")


@pytest.mark.parametrize(("call", "changed"), [("annotate", "pods"), ("scale", "deployment")])
def test_an_object_that_another_client_changed_is_read_again(
    call: str, changed: str, nursery: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request names an outdated version of the object."""
    launcher = nursery.launcher()
    api, answers = launcher._api, []
    request = getattr(api, call)

    def raced(*words: Any, **more: Any) -> Any:
        if not answers:
            nursery.kubectl("annotate", changed, "--all", "another=hand")
        try:
            answers.append(200)
            return request(*words, **more)
        except LauncherError as refused:
            answers[-1] = refused.status
            raise

    monkeypatch.setattr(api, call, raced)
    world = World(nursery, launcher)
    world.scaler.request(["payment-0"])
    world.wait_for_report()
    world.until(ReplicaChange.READY)
    assert answers[0] == 409
    assert not launcher.problem
