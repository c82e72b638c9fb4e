"""infra/k8s: valid, restricted, with limits, and consistent with the declared settings."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from autoscaler.keda.scaler import KedaSettings
from autoscaler.live.settings import AutoscalerSettings
from contracts.connection import Connection
from contracts.logs import LogSettings
from services.common.faust_app import ServiceSettings
from services.order.__main__ import OrderSettings
from services.payment.replica import ReplicaSettings

BASE = Path(__file__).parents[3] / "infra" / "k8s" / "base"
READ_BY = {
    "order": OrderSettings,
    "shipment": ServiceSettings,
    "notification": ServiceSettings,
    "payment": ReplicaSettings,
    "autoscaler": AutoscalerSettings,
    "topics": Connection,
    "tailpack-keda": KedaSettings,
}
KINDS = ("Deployment", "Job", "DaemonSet")
ASK_API = {"autoscaler"}


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def changed(document: dict[str, Any], steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Apply the `add` steps of a JSON patch and return the result."""
    for step in steps:
        assert step["op"] == "add"
        *way, last = step["path"].strip("/").split("/")
        place: Any = document
        for name in way:
            place = place[int(name) if name.isdigit() else name]
        if last == "-":
            place.append(step["value"])
        else:
            place[last] = step["value"]
    return document


def patched(document: dict[str, Any]) -> dict[str, Any]:
    """Return a workload with the patches of kustomization.yaml."""
    return (
        changed(document, documents(BASE / "pods.yaml")[0]) if document["kind"] in ("Deployment", "Job") else document
    )


def all_of() -> list[dict[str, Any]]:
    listed = documents(BASE / "kustomization.yaml")[0]["resources"]
    overlays = [BASE.parent / "overlays" / each for each in ("kind/kafka.yaml", "keda/scaler.yaml")]
    jobs = [
        one
        for path in (BASE.parent / "components").glob("*/*.yaml")
        for one in documents(path)
        if one["kind"] not in {"Component", "Kustomization"}
    ]
    closed = [one for path in overlays for one in documents(path)]
    return jobs + closed + [patched(one) for name in listed for one in documents(BASE / name)]


WORKLOADS = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in all_of() if one["kind"] in KINDS}


@pytest.mark.parametrize("document", all_of(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_the_manifest_is_valid(document):
    kubernetes_validate.validate(document, "1.34", strict=True)


@pytest.mark.parametrize("app", READ_BY)
def test_each_variable_is_a_setting_of_its_process(app):
    own = {one.name for kind in (READ_BY[app], Connection) for one in fields(kind)}
    variables = [one["name"] for one in WORKLOADS[app]["containers"][0].get("env", [])]
    assert {name.removeprefix("TAILPACK_").lower() for name in variables} <= own


def test_each_common_setting_is_declared_by_some_process():
    known = {one.name for kind in (*READ_BY.values(), Connection, LogSettings) for one in fields(kind)}
    for path in BASE.parent.rglob("kustomization.yaml"):
        for generator in documents(path)[0].get("configMapGenerator", []):
            names = [literal.partition("=")[0] for literal in generator.get("literals", [])]
            assert {name.removeprefix("TAILPACK_").lower() for name in names} <= known, path


@pytest.mark.parametrize("app", WORKLOADS)
def test_a_pod_is_restricted_and_has_limits(app):
    """Check fields that pod security does not enforce. A cluster test checks the others."""
    pod = WORKLOADS[app]
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["enableServiceLinks"] is False
    assert pod.get("automountServiceAccountToken", False) is (pod.get("serviceAccountName") in ASK_API)
    assert set(container["resources"]) == {"requests", "limits"}
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_accounts_get_an_api_token_only_if_their_pod_requests_it():
    accounts = [one for one in all_of() if one["kind"] == "ServiceAccount"]
    assert {one["metadata"]["name"] for one in accounts} == set(READ_BY)
    assert not any(one["automountServiceAccountToken"] for one in accounts)
