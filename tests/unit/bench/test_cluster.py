"""What a run on a cluster refuses before a cluster is asked."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.cluster import Cluster, ClusterError, run_there
from bench.scenario import load_scenario


def test_without_kubectl_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="kubectl is not installed"):
        run_there(load_scenario("w1"), Cluster(), tmp_path, lambda _: None)


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (replace(load_scenario("w1"), name="mine"), "only the scenarios that are delivered"),
        (load_scenario("w1", {"payment.runtime": "cooperative-sticky"}), "not cooperative-sticky's"),
    ],
)
def test_what_pods_cannot_run_is_said(scenario: object, why: str, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=why):
        run_there(scenario, Cluster(), tmp_path, lambda _: None)  # type: ignore[arg-type]
