"""A Docker engine, if one runs, and the images of this checkout."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from compose_file import services

ROOT = Path(__file__).parents[2]
TOOL = ROOT.parent / "shared" / "tools" / "containers"
"""Provides an engine on machines that cannot pull images."""
HINT = "no Docker engine answers: install Docker with Compose 2.20 or newer, start it, or set DOCKER_HOST"
START_S, BUILD_S = 600, 1500


@pytest.fixture(scope="session")
def engine() -> None:
    """A running engine with Compose; without one the test is skipped."""
    if not _answers() and TOOL.exists():
        done = subprocess.run([str(TOOL), "up"], stdout=subprocess.PIPE, text=True, timeout=START_S, check=False)
        os.environ["DOCKER_HOST"] = done.stdout.strip().rpartition("DOCKER_HOST=")[2].strip("'\"")
    if not _answers():
        pytest.skip(HINT)


@pytest.fixture(scope="session")
def images(engine: None) -> None:
    """Both images, built from this checkout."""
    subprocess.run(["docker", "compose", "build", "--quiet"], cwd=ROOT, timeout=BUILD_S, check=True)


@pytest.fixture(scope="session")
def image(engine: None, request: pytest.FixtureRequest) -> str:
    """The image of services and autoscaler: the one that TAILPACK_IMAGE names, or built from this checkout."""
    if named := os.environ.get("TAILPACK_IMAGE"):
        return named
    request.getfixturevalue("images")
    return str(services()["order"]["image"])


def _answers() -> bool:
    if shutil.which("docker") is None:
        return False
    asked = [["docker", "info"], ["docker", "compose", "version"]]
    return all(subprocess.run(words, capture_output=True, check=False).returncode == 0 for words in asked)
