"""docs/own-service.md as containers, on a real engine: its Dockerfile is built, and replicas are containers of it."""

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest
from own_service import Reader

from autoscaler.live.launchers.docker import GROUP, REPLICA
from tailpack.local.broker import Broker

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]

OURS = {"label": f"{GROUP}=greeters"}


@pytest.fixture
def reader(image: str, private_broker: Broker, tmp_path: Path) -> Iterator[Reader]:
    """With a third of the load."""
    folder = tmp_path / "reader"
    folder.mkdir()
    instead = {"tailpack:0.1.0": image, "range(5000)": "range(1500)"}
    follows = Reader(folder, private_broker.address(), "As containers", **instead)
    yield follows
    follows.close()
    with closing(docker.from_env()) as engine:
        for left in engine.containers.list(all=True, filters=OURS, ignore_removed=True):
            left.remove(force=True)


def test_a_consumer_of_ones_own_is_scaled_as_containers(reader: Reader) -> None:
    build, autoscale = reader.differs
    built = reader.type(build)
    assert built.returncode == 0, built.stderr
    reader.topics()
    scaled = reader.start(autoscale)
    most = reader.scaled(scaled)
    with closing(docker.from_env()) as engine:
        found = engine.containers.list(filters=OURS, ignore_removed=True)
        assert found
        assert {one.labels[REPLICA] for one in found} <= set(most)
        assert any(b"hello name-" in one.logs() for one in found)
        scaled.send_signal(signal.SIGINT)
        assert scaled.wait(timeout=60) == 0, scaled.communicate()
        assert not engine.containers.list(all=True, filters=OURS, ignore_removed=True)
