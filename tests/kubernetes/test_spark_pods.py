"""The report by executors that are pods is that of one machine; what keeps them from running is said."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pods import Deployed, kubectl
from tailpack_command import tailpack

from bench.cluster import MANIFESTS

pytestmark = pytest.mark.timeout(900)
OVERLAY: Final = MANIFESTS / "overlays" / "report"
MASTER: Final = "k8s://https://kubernetes.default.svc"
REPORT_S: Final = 400.0
RUN: Final = "recorded"
ALONE: Final = "/tmp/run"  # noqa: S108  of the pod
SMALL: Final = """
spark.executor.instances                2
spark.executor.memory                   512m
spark.executor.extraJavaOptions         -XX:+UseSerialGC -XX:TieredStopAtLevel=1
spark.kubernetes.executor.request.cores 0.2
spark.sql.shuffle.partitions            6
"""


class Place(Deployed):
    """A namespace with the overlay, and a volume for the runs: of this machine, where the cluster provides none."""

    def __init__(self, image: str) -> None:
        super().__init__(image, "report", "tailpack-report")
        self.volume = ""

    def begin(self, folder: Path) -> None:
        """Apply it, and wait until its pod runs. folder: the volume, where it is of this machine."""
        if not json.loads(kubectl("get", "storageclasses", "-o", "json"))["items"]:
            self.volume = f"runs-{self.name}"
            folder.chmod(0o777)  # the pods' user is another one
            spec = {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteMany"],
                "claimRef": {"namespace": self.name, "name": "runs"},
                "hostPath": {"path": str(folder)},
            }
            made = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self.volume}, "spec": spec}
            kubectl("apply", "-f", "-", given=yaml.safe_dump(made))
        small = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "spark"}}
        self.apply(patches=[{"patch": json.dumps(small | {"data": {"spark-defaults.conf": SMALL}})}])
        self.wait_ready(report=1)

    def report(self, folder: str, *words: str, spark: str = "") -> str:
        """Return what the command says in the pod. spark: settings of this report alone."""
        told = ["env", f"PYSPARK_SUBMIT_ARGS={spark} pyspark-shell"] if spark else []
        command = [*told, "tailpack", "report", folder, "--master", MASTER, *words]
        return kubectl("--namespace", self.name, "exec", "deployment/report", "--", *command, deadline_s=REPORT_S)

    def refused(self, folder: str, spark: str = "") -> str:
        """Return what the command complains of there."""
        with pytest.raises(AssertionError) as said:
            self.report(folder, spark=spark)
        return " ".join(str(said.value).split())

    def close(self) -> None:
        kubectl("delete", "namespace", self.name, "--wait=false")
        if self.volume:
            kubectl("delete", "persistentvolume", self.volume, "--wait=false")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / RUN
    told = ("--policy", "algorithm-2", "--set", "duration_s=120", "--out", str(folder))
    assert tailpack("simulate", "w1", *told, deadline_s=REPORT_S).returncode == 0
    return folder


@pytest.fixture(scope="module")
def place(report_image: str, run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Has the run as /runs/recorded."""
    place = Place(report_image)
    try:
        place.begin(tmp_path_factory.mktemp("volume"))
        kubectl("--namespace", place.name, "cp", str(run), f"{place.pods('report')[0]['metadata']['name']}:/runs/{RUN}")
        yield place
    finally:
        place.close()


def test_executors_that_are_pods_find_what_one_machine_finds(place: Place, run: Path) -> None:
    there = json.loads(place.report(f"/runs/{RUN}", "--json"))

    assert tailpack("report", str(run), "--master", "local[2]", deadline_s=REPORT_S).returncode == 0
    here = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert without_provenance(there) == without_provenance(here)
    assert here["events"] > 1_000
    asked = place.asked_of_api("report")
    made = [one for one in asked if one["verb"] == "create" and one["responseStatus"]["code"] == 201]
    assert len(made) == 2, "two executors"
    used = {(one["objectRef"]["resource"], one["verb"]) for one in asked}
    assert used | {("pods", "delete")} == granted()  # Spark deletes an executor that fails; here none need do so


def test_a_folder_that_executors_would_not_see_is_refused(place: Place) -> None:
    place.kubectl("exec", "deployment/report", "--", "sh", "-c", f"cp -r /runs/{RUN} {ALONE}")
    assert f"{ALONE} lies in this pod alone" in place.refused(ALONE)


def test_a_role_that_is_missing_is_named(place: Place) -> None:
    place.kubectl("delete", "rolebinding", "report")
    said = place.refused(f"/runs/{RUN}")
    assert 'cannot get resource "pods"' in said
    assert "the Role of infra/k8s/overlays/report" in said


def without_provenance(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "provenance"}


def granted() -> set[tuple[str, str]]:
    role = next(one for one in yaml.safe_load_all((OVERLAY / "accounts.yaml").read_text()) if one["kind"] == "Role")
    return {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
