"""The benchmark on a real control plane: a run whose load and report are pods, and what a cluster refuses it."""

from pathlib import Path

import pytest

import bench.cluster
from bench.cluster import Cluster, ClusterError, Namespace, namespace, run_there, startup_there
from bench.scenario import load_scenario
from report.result import Result


def test_a_run_of_pods_has_the_files_of_any_run_and_leaves_nothing(
    kubernetes: str, report_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    apply = Namespace.apply
    monkeypatch.setattr(Namespace, "apply", lambda self, **what: (made.append(self.name), apply(self, **what)))
    scenario = load_scenario("w1", {"policy": "tail-aware", "seed": 7, "duration_s": 20})
    there, said = Cluster(images={"tailpack": kubernetes, "tailpack-report": report_image}), list[str]()
    run_there(scenario, there, tmp_path, said.append)
    result = Result.load(tmp_path)
    assert (result.policy, result.seed, result.duration_s) == ("tail-aware", 7, 20)
    assert result.whole
    assert result.starts is not None
    assert (tmp_path / "report.html").exists()
    assert any(line.startswith("load") for line in said)
    left = there.kubectl("get", "namespace", *made, "--ignore-not-found")
    assert not left or b"Terminating" in left


def test_a_start_is_measured_in_the_place_of_the_autoscaler(kubernetes: str) -> None:
    found = startup_there(Cluster(images={"tailpack": kubernetes}), lambda _: None)
    assert found.launcher == "kubernetes"
    assert found.n >= 1
    assert 0 < found.asked_to_ready_p50_s <= found.p99_s


def test_an_image_that_is_not_there_is_named(kubernetes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.cluster, "STUCK_S", 2.0)
    with pytest.raises(ClusterError, match=r"not ready .* ErrImage.*tailpack:nowhere|not ready .*ImagePullBackOff"):
        startup_there(Cluster(images={"tailpack": "tailpack:nowhere"}), lambda _: None)


def test_a_context_that_is_not_there_is_named(kubernetes: str) -> None:
    with pytest.raises(ClusterError, match="nowhere"), namespace(Cluster(context="nowhere")) as place:
        place.apply()
