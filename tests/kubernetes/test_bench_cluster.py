"""The benchmark on a real control plane: a run whose load and report are pods, and what a cluster refuses it."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from tailpack_command import tailpack

import bench.stuck
from bench import BenchError
from bench.cluster import MANIFESTS, Cluster, namespace, startup_there
from bench.results import ClusterRow, load
from report.result import Result


@pytest.mark.timeout(900)
def test_the_way_to_gke_but_for_its_nodes(kubernetes: str, report_image: str, tmp_path: Path) -> None:
    """By the script of docs/gke.md, whose step `images` has brought ours: a run of pods has the files of any run."""
    registry, named, _ = kubernetes.rpartition("/tailpack:")
    if not (named and report_image.startswith(registry)):
        pytest.skip("the script names images by their registry: set TAILPACK_IMAGE to REGISTRY/tailpack:0.1.0")
    context = Cluster().kubectl("config", "current-context").decode().strip()
    there = {"CONTEXT": context, "REGISTRY": registry, "OVERLAY": "infra/k8s/overlays/kind"}
    assert "brings its own Kafka" in script(there, "kafka")
    told = ("--scenarios", "w1", "--policies", "tail-aware", "--duration", "20s", "--out", str(tmp_path / "out"))
    script(there, "run", *told, "--into", str(tmp_path))
    (folder,) = (tmp_path / "out").iterdir()
    result = Result.load(folder)
    assert (result.policy, result.seed, result.duration_s) == ("tail-aware", 1, 20)
    assert result.whole
    assert (folder / "report.html").exists()
    (row,) = load("cluster", ClusterRow, tmp_path)
    assert result.starts is not None
    assert (row.result.events, row.result.start_max_s) == (result.events, result.starts.max_s)
    left = Cluster().kubectl("get", "namespace", result.run, "--ignore-not-found")
    assert not left or b"Terminating" in left


def script(there: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [MANIFESTS.parent / "gke.sh", *words],
        env=os.environ | there,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_start_is_measured_in_the_place_of_the_autoscaler(kubernetes: str) -> None:
    told = ("--launcher", "kubernetes", "--image", kubernetes)
    done = tailpack("bench", "startup", *told, "--json", deadline_s=240)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["launcher"] == "kubernetes"
    assert found["n"] >= 1
    assert 0 < found["asked_to_ready_p50_s"] <= found["p99_s"]


def test_an_image_that_is_not_there_is_named(kubernetes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.stuck, "STUCK_S", 2.0)
    with pytest.raises(BenchError, match=r"not ready .* ErrImage.*tailpack:nowhere|not ready .*ImagePullBackOff"):
        startup_there(Cluster(images={"tailpack": "tailpack:nowhere"}), lambda _: None)


def test_a_context_that_is_not_there_is_named(kubernetes: str) -> None:
    with pytest.raises(BenchError, match="nowhere"), namespace(Cluster(context="nowhere")) as place:
        place.apply()


def test_without_a_kubeconfig_it_is_one_line(kubernetes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(BenchError, match=r"^no kubeconfig leads to a cluster \(/nowhere/config\)"):
        startup_there(Cluster(images={"tailpack": kubernetes}), lambda _: None)


def overlay(folder: Path, *resources: dict, patches: Sequence[dict] = (), **settings: str) -> Path:
    """Return an overlay upon the base, which has no broker of its own."""
    for number, one in enumerate(resources):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(one))
    told = [f"TAILPACK_{name.upper()}={value}" for name, value in settings.items()]
    here = {
        "resources": [
            os.path.relpath(MANIFESTS / "base", folder.resolve()),
            *(f"{n}.yaml" for n in range(len(resources))),
        ],
        "namespace": "tailpack",
        "patches": list(patches),
        "configMapGenerator": [{"name": "settings", "behavior": "merge", "literals": told}] if told else [],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(here))
    return folder


def test_brokers_that_do_not_answer_are_named_as_soon_as_a_pod_has_given_up(kubernetes: str, tmp_path: Path) -> None:
    """The Job that makes the topics is patient for 30 s; here for 3."""
    code = (
        "import os, sys; from tailpack.local import topics; from tailpack.__main__ import main\n"
        "topics.DEADLINE_S = 3.0\n"
        "where = [os.environ[f'TAILPACK_{name}'] for name in ('BOOTSTRAP_SERVERS', 'NAMESPACE')]\n"
        "words = 'tailpack topics create demo --bootstrap-servers {} --namespace {}'\n"
        "sys.argv = words.format(*where).split()\n"
        "main()"
    )
    words = {"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": ["python", "-c", code]}
    silent = overlay(
        tmp_path,
        patches=[{"target": {"kind": "Job"}, "patch": json.dumps([words])}],
        bootstrap_servers="10.255.255.1:9092",
    )
    said = (
        r"not ready after .*: topics; pod topics-.*: topics ended with status 2: .*Kafka at 10.255.255.1:9092 did not"
    )
    with pytest.raises(BenchError, match=said):
        startup_there(Cluster(overlay=silent, images={"tailpack": kubernetes}), lambda _: None)


def test_a_quota_that_is_used_up_is_named(kubernetes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.stuck, "STUCK_S", 1.0)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    }
    with pytest.raises(BenchError, match=r"not ready .*; Error creating: pods .* is forbidden: exceeded quota"):
        startup_there(Cluster(overlay=overlay(tmp_path, quota), images={"tailpack": kubernetes}), lambda _: None)
