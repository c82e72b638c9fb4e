"""All of tailpack on a real control plane: a leader, a standby, and replicas as pods."""

import os
import signal
from collections.abc import Callable
from typing import Any

import psutil
import pytest
import yaml
from kafka_helpers import wait_for
from kubernetes import client, config
from pods import Deployed, kubectl
from services_stack import order_without_id

from autoscaler.live.hold_reader import PAUSED
from autoscaler.live.launchers.pods import DELETION_COST
from bench.cluster import MANIFESTS
from contracts.clock import monotonic_s

REPLICAS = 2
LEASES_USED = {("coordination.k8s.io", "leases", verb) for verb in ("get", "patch")}
"""Verbs for the Lease. Audit policies usually omit leases, because all nodes renew theirs all the time."""


@pytest.fixture(scope="module")
def tailpack(deployed: Deployed) -> Deployed:
    """All services, with at least two replicas, because the last one never counts as hung."""
    deployed.apply(settings={f"TAILPACK_{which}_REPLICAS": str(REPLICAS) for which in ("MIN", "INITIAL")})
    deployed.wait_ready(kafka=1, order=1, shipment=1, notification=1, autoscaler=2)
    wait_for(lambda: deployed.ready("payment") >= REPLICAS, "replicas are Ready", deadline_s=180)
    return deployed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_the_standby_takes_over_without_touching_any_replica(tailpack: Deployed, number: signal.Signals) -> None:
    wait_for(lambda: tailpack.ready("autoscaler") == 2, "a leader and a standby", deadline_s=120)
    before, leader = replicas(tailpack), holder(tailpack)
    assert sorted(name for name, _ in before.values())[:REPLICAS] == [f"payment-{number}" for number in range(REPLICAS)]
    process = process_in(leader)
    asked_s = monotonic_s()
    process.send_signal(number)
    wait_for(lambda: holder(tailpack) not in (leader, ""), "another leads", every_s=0.02)
    print(f"{number.name}: another leads after {monotonic_s() - asked_s:.2f} s")  # noqa: T201  a measurement without a limit
    if number is signal.SIGSTOP:
        process.send_signal(signal.SIGCONT)  # the plan log fences it, and it exits
    flows(tailpack)
    assert replicas(tailpack) == before
    wait_for(lambda: tailpack.ready("autoscaler") == 2, "the former leader is a standby", deadline_s=120)
    assert replicas(tailpack) == before


def test_a_hung_replica_is_replaced_and_the_role_has_exactly_the_used_verbs(tailpack: Deployed) -> None:
    hung = tailpack.pods("payment")[0]
    process_in(hung["metadata"]["name"]).send_signal(signal.SIGSTOP)
    uid = hung["metadata"]["uid"]
    wait_for(lambda: uid not in {one["metadata"]["uid"] for one in tailpack.pods("payment")}, "it is deleted")
    wait_for(lambda: tailpack.ready("payment") >= REPLICAS, "another serves", deadline_s=120)
    requests = tailpack.api_requests()
    refused = [one for one in requests if one.get("responseStatus", {}).get("code") == 403]
    assert not refused
    logged = {used(one["verb"], one["objectRef"]) for one in requests}
    assert logged | LEASES_USED == granted()


def test_annotations_of_keda_on_the_deployment_pin_and_release_the_group(tailpack: Deployed) -> None:
    def annotate(value: str) -> None:
        kubectl("--namespace", tailpack.name, "annotate", "--overwrite", "deployment/payment", f"{PAUSED}-{value}")

    with tailpack.forwarded(f"pod/{holder(tailpack)}") as page:
        annotate(f"replicas={REPLICAS + 1}")
        wait_for(lambda: tailpack.ready("payment") == REPLICAS + 1, "the group is pinned", deadline_s=120)
        assert f"pinned at {REPLICAS + 1} by annotation" in page("/healthz")[1]["hold"]
        annotate("replicas=many")
        wait_for(lambda: "'many' must be a number" in str(page("/healthz")), "the bad value is reported")
        assert not page("/healthz")[1].get("hold")
        annotate("replicas-")
        wait_for(lambda: PAUSED not in str(page("/healthz")), "no annotation is left")
    wait_for(lambda: len(tailpack.pods("payment")) == REPLICAS, "the group is released", deadline_s=120)


IMAGE: dict[str, Any] = {"spec": {"containers": [{"name": "payment", "image": "evil:1"}]}}
CHANGES: dict[str, tuple[str, dict[str, Any], int]] = {
    "its annotation of a replica": ("payment", {"metadata": {"annotations": {DELETION_COST: "7"}}}, 200),
    "another annotation of a replica": ("payment", {"metadata": {"annotations": {"another": "hand"}}}, 422),
    "the image of a replica": ("payment", IMAGE, 422),
    "the deadline of a replica": ("payment", {"spec": {"activeDeadlineSeconds": 1}}, 422),
    "a label of a replica": ("payment", {"metadata": {"labels": {"app": "order"}}}, 422),
    "a replica's owner": ("payment", {"metadata": {"ownerReferences": None}}, 422),
    "an annotation of another service": ("order", {"metadata": {"annotations": {DELETION_COST: "7"}}}, 422),
}
"""Change → app of the pod, strategic merge patch, status of the answer."""


def test_the_autoscaler_may_change_only_its_annotations_of_replicas_and_the_gate(tailpack: Deployed) -> None:
    """The admission policy limits what the Role, which has no fields, allows."""
    config.load_kube_config(os.environ["KUBECONFIG"])
    api = client.ApiClient()
    api.set_default_header("Impersonate-User", f"system:serviceaccount:{tailpack.name}:autoscaler")
    core = client.CoreV1Api(api)

    def status(request: Callable[..., Any], app: str, **more: Any) -> int:
        try:
            return int(
                request(tailpack.pods(app)[0]["metadata"]["name"], tailpack.name, _preload_content=False, **more).status
            )
        except client.ApiException as refused:
            return int(refused.status or 0)

    answers = {change: status(core.patch_namespaced_pod, app, body=body) for change, (app, body, _) in CHANGES.items()}
    assert answers == {change: expected for change, (_, _, expected) in CHANGES.items()}
    assert status(core.delete_namespaced_pod, "order") == 422
    assert status(core.delete_namespaced_pod, "payment", dry_run="All") == 200


def flows(tailpack: Deployed) -> None:
    with tailpack.forwarded("service/order", 80) as order:
        code, placed = order("/orders", order_without_id())
        assert code == 202, placed
        where = placed["status_url"]
        wait_for(lambda: order(where)[1].get("status") == "notified", f"{where} is notified")


def holder(tailpack: Deployed) -> str:
    return tailpack.get("lease", "autoscaler")["spec"].get("holderIdentity", "")


def replicas(tailpack: Deployed) -> dict[str, tuple[str, int]]:
    """Return pod → its replica's name and the number of its container's restarts."""
    return {
        one["metadata"]["name"]: (
            one["metadata"]["annotations"]["tailpack/replica"],
            one["status"]["containerStatuses"][0]["restartCount"],
        )
        for one in tailpack.pods("payment")
    }


def process_in(pod: str) -> psutil.Process:
    """Return the pod's process on this machine, which is the node."""
    for one in psutil.process_iter():
        try:
            if one.environ().get("HOSTNAME") == pod and "python" in one.name():
                return one
        except psutil.Error:
            continue
    pytest.skip("pods do not run on this machine")


def used(verb: str, what: dict[str, Any]) -> tuple[str, str, str]:
    resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
    return what.get("apiGroup", ""), resource, verb


def granted() -> set[tuple[str, str, str]]:
    documents = yaml.safe_load_all((MANIFESTS / "base" / "accounts.yaml").read_text())
    rules = next(one for one in documents if one["kind"] == "Role")["rules"]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
