"""The benchmark on a real control plane: a run with load and report as pods, and errors of the cluster."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from bench import BenchError, cluster
from bench.benchmarks.cluster import run_on_cluster
from bench.cluster import MANIFESTS, Cluster
from bench.scenario import load_scenario
from report.result import Result


@pytest.mark.timeout(900)
def test_the_steps_of_the_gke_guide_work_without_gke_nodes(kubernetes: str, report_image: str, tmp_path: Path) -> None:
    """The script of docs/howto/gke.md runs pods, which leave the files of a run. The fixture loads the images."""
    registry, named, _ = kubernetes.rpartition("/tailpack:")
    if not (named and report_image.startswith(registry)):
        pytest.skip("the script names images by their registry: set TAILPACK_IMAGE to REGISTRY/tailpack:0.1.0")
    context = Cluster().kubectl("config", "current-context").decode().strip()
    there = {"CONTEXT": context, "REGISTRY": registry, "OVERLAY": "infra/k8s/overlays/kind"}
    assert "contains its own Kafka" in script(there, "kafka")
    arguments = ("w1", "--policy", "tail-aware", "--duration", "20s", "--out", str(tmp_path / "out"))
    script(there, "run", *arguments, "--into", str(tmp_path))
    (folder,) = (tmp_path / "out").iterdir()
    result = Result.load(folder)
    assert (result.policy, result.seed, result.duration_s) == ("tail-aware", 1, 20)
    assert result.effects_complete
    assert (folder / "report.html").exists()
    row = json.loads((tmp_path / "clusterruns.jsonl").read_text())["row"]
    assert result.starts is not None
    assert (row["events"], row["start_max_s"]) == (result.events, result.starts.max_s)
    assert not Cluster().kubectl("get", "namespace", result.run, "--ignore-not-found")


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


def fails(there: Cluster, folder: Path, match: str) -> None:
    with pytest.raises(BenchError, match=match):
        run_on_cluster(load_scenario("w1"), there, folder / "run", lambda _: None)


def test_a_missing_image_is_named(kubernetes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "STUCK_TIMEOUT_S", 2.0)
    named = r"not ready .* ErrImage.*tailpack:nowhere|not ready .*ImagePullBackOff"
    fails(Cluster(images={"tailpack": "tailpack:nowhere"}), tmp_path, named)


def test_a_missing_context_is_named(kubernetes: str, tmp_path: Path) -> None:
    fails(Cluster(context="nowhere"), tmp_path, "nowhere")


def test_a_missing_kubeconfig_is_named(kubernetes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    fails(Cluster(), tmp_path, r"^kubeconfig /nowhere/config has no cluster")


def overlay(folder: Path, *resources: dict, **settings: str) -> Path:
    """Return an overlay on the base, which has no broker."""
    for number, one in enumerate(resources):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(one))
    literals = [f"TAILPACK_{name.upper()}={value}" for name, value in settings.items()]
    base = os.path.relpath(MANIFESTS / "base", folder.resolve())
    here = {
        "resources": [base, *(f"{number}.yaml" for number in range(len(resources)))],
        "namespace": "tailpack",
        "configMapGenerator": [{"name": "settings", "behavior": "merge", "literals": literals}] if literals else [],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(here))
    return folder


def test_unreachable_brokers_are_named(kubernetes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "STUCK_TIMEOUT_S", 2.0)
    silent = overlay(tmp_path, bootstrap_servers="10.255.255.1:9092")
    named = r"not ready after .*topics.*; pod topics-\S+ ended with exit status 2: .*Kafka at 10.255.255.1:9092 did not"
    fails(Cluster(overlay=silent, images={"tailpack": kubernetes}), tmp_path, named)


def test_an_exhausted_quota_is_named(kubernetes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "STUCK_TIMEOUT_S", 1.0)
    none = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    named = r"not ready .*; Error creating: pods .* is forbidden: exceeded quota"
    fails(Cluster(overlay=overlay(tmp_path, none), images={"tailpack": kubernetes}), tmp_path, named)
