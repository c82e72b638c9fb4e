"""The how-to guides whose blocks need a cluster, executed from top to bottom. They use the namespace `tailpack`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from follow import follow, pages
from pods import Deployed, kubectl

from bench.cluster import MANIFESTS, Cluster, Namespace

SHORT = {"--policy tail-aware --policy keda-hpa --seeds 3": "--policy tail-aware --duration 10s"}
"""One short run instead of the six of the page."""


@pytest.fixture(scope="module")
def kafka(deployed: Deployed) -> str:
    """A Kafka for the blocks outside of the cluster."""
    kubectl("create", "namespace", deployed.name)
    deployed.kubectl("apply", "--filename", str(MANIFESTS / "overlays" / "kind" / "kafka.yaml"))
    deployed.wait_ready(kafka=1)
    return deployed.broker


@pytest.fixture(autouse=True)
def namespace_of_the_pages(kubernetes: str) -> Iterator[None]:
    """It is deleted after each page."""
    place = Namespace(Cluster(), "tailpack")
    if kubectl("get", "namespace", place.name, "--ignore-not-found"):
        pytest.skip(f"the namespace {place.name} exists and does not belong to this test")
    yield
    place.delete()


@pytest.mark.parametrize("page", pages("kubernetes"), ids=lambda page: page.stem)
@pytest.mark.usefixtures("cluster_tool", "report_image")
def test_every_block_of_the_page_runs(page: Path, kafka: str, tmp_path: Path) -> None:
    loaded = {"kind load docker-image": "docker image inspect"}  # the fixtures have loaded them
    follow(page, tmp_path, kafka, "kubernetes", **loaded, **SHORT)
