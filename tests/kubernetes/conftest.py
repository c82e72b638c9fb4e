"""A Kubernetes cluster for the tests of this folder: from KUBECONFIG or the shared tool; without one they skip."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from own_service import Reader
from pod_nursery import Pods
from pods import ROOT, Deployed

KAFKA = "apache/kafka:4.3.1"
REGISTRY = "docker.io/library"
"""Prefix of images without a registry: those that are loaded into the cluster are also tailpack:0.1.0 of the guides."""
HOW = "no Kubernetes: set KUBECONFIG to a cluster that has the images and KEDA, or have ../shared/tools/cluster"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder: they need a cluster."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kubernetes)
            item.add_marker(pytest.mark.timeout(900))  # images are built in the first one's name


@pytest.fixture(scope="session")
def kubernetes() -> str:
    """Name of an image in the cluster; KUBECONFIG and PATH are set for this cluster."""
    if os.environ.get("KUBECONFIG") and shutil.which("kubectl") and _answers():
        return os.environ.get("TAILPACK_IMAGE", "tailpack:0.1.0")
    tools = _tools()
    if tools is None:
        pytest.skip(HOW)
    for tool in ("containers", "cluster"):
        up = subprocess.run([str(tools / tool), "up"], capture_output=True, text=True, check=False, timeout=900)
        if up.returncode:
            pytest.skip(f"{HOW}; {tool} up: {up.stderr.strip()[-300:]}")
        for line in up.stdout.splitlines():
            for name, _, value in (one.partition("=") for one in line.removeprefix("export ").split()):
                os.environ[name] = os.path.expandvars(value)
    _output([str(tools / "cluster"), "load", KAFKA])
    _output([str(tools / "cluster"), "keda"])
    return _there(tools, "tailpack")


@pytest.fixture(scope="session")
def report_image(kubernetes: str) -> str:
    """Name of the report's image in the cluster."""
    if tools := _tools():
        return _there(tools, "report")
    return os.environ.get("TAILPACK_REPORT_IMAGE", "tailpack-report:0.1.0")


@pytest.fixture(scope="session")
def greeter_image(kubernetes: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Image of docs/tutorials/own-consumer.md in the cluster."""
    if (tools := _tools()) is None:
        pytest.skip(f"nothing loads images into the cluster; {HOW}")
    reader = Reader(tmp_path_factory.mktemp("image"), "", "kubernetes", **{"tailpack:0.1.0": kubernetes})
    built = reader.type("docker build -t greeter:1 .")
    assert built.returncode == 0, built.stderr
    _output([str(tools / "cluster"), "load", "greeter:1"])


@pytest.fixture(scope="module")
def deployed(kubernetes: str) -> Iterator[Deployed]:
    """A namespace for the module; deleted afterwards."""
    place = Deployed(kubernetes)
    try:
        yield place
    finally:
        place.delete()


@pytest.fixture
def nursery(kubernetes: str) -> Iterator[Pods]:
    """Replicas in a namespace for the test."""
    nursery = Pods(kubernetes)
    yield nursery
    nursery.close()


@pytest.fixture
def cluster_tool(kubernetes: str) -> Path:
    """Tool whose command `up` restarts stopped parts of the cluster."""
    if (tools := _tools()) is None:
        pytest.skip("nothing here starts a dead API server again: ../shared/tools/cluster does")
    return tools / "cluster"


def _tools() -> Path | None:
    return next((each / "shared/tools" for each in ROOT.parents if (each / "shared/tools/cluster").exists()), None)


def _there(tools: Path, target: str) -> str:
    """Load an image into the tool's cluster, as infra/gke.sh pushes it to Google's; return its name."""
    variable, image = {
        "tailpack": ("TAILPACK_IMAGE", f"{REGISTRY}/tailpack:0.1.0"),
        "report": ("TAILPACK_REPORT_IMAGE", f"{REGISTRY}/tailpack-report:0.1.0"),
    }[target]
    if variable in os.environ:
        _output([str(tools / "cluster"), "load", os.environ[variable]])
        return os.environ[variable]
    variables = {"CONTEXT": "none", "REGISTRY": REGISTRY, "PUSH": f"{tools / 'cluster'} load"}
    _output([str(ROOT / "infra/gke.sh"), "images", target], variables)  # layers are kept: a second time takes seconds
    return image


def _answers() -> bool:
    command = ["kubectl", "version", "--request-timeout=10s"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _output(command: list[str], variables: Mapping[str, str] | None = None) -> str:
    environ = os.environ | (variables or {})
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr[-2000:]}"
    return done.stdout
