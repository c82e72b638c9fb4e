"""Containers keep the launchers' contract on a real engine."""

import dataclasses
import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import docker
import pytest
from docker.errors import APIError
from docker.models.containers import ContainerCollection
from launcher_contract import LauncherContract
from tailpack_command import tailpack

from autoscaler.live.launcher import LauncherError
from autoscaler.live.launchers.docker import GROUP, REPLICA, ContainerSpec, DockerLauncher
from autoscaler.live.launchers.socket_proxy import ProxySettings, SocketProxy
from tailpack.local.ports import free_port

pytestmark = pytest.mark.containers

REPLICA_CODE = (Path(__file__).parents[1] / "reporting_replica.py").read_text(encoding="utf-8")


class Containers:
    """Replicas as containers of a group of the test's own."""

    killed = "killed by SIGKILL"
    keeps_the_dead = True

    def __init__(self, image: str) -> None:
        self.group = f"test-{uuid.uuid4().hex[:8]}"
        self.image = image
        self.volume = ""
        self._launchers: list[DockerLauncher] = []
        self._engine = docker.from_env()

    def launcher(self, **environ: str) -> DockerLauncher:
        spec = ContainerSpec(
            group=self.group,
            image=self.image,
            command=["python", "-c", REPLICA_CODE],
            environ=environ,
            memory="64m",
            volume=self.volume,
        )
        self._launchers.append(DockerLauncher(spec))
        return self._launchers[-1]

    def said(self, name: str) -> str:
        found = self._found(f"{REPLICA}={name}")
        return found[0].logs().decode() if found else ""

    def close(self) -> None:
        for launcher in self._launchers:
            launcher.close()
        for container in self._found():
            container.remove(force=True)
        for thread in (one for one in threading.enumerate() if one.name.startswith("container of ")):
            thread.join(30)
        self._engine.close()

    def _found(self, *labels: str):
        return self._engine.containers.list(
            all=True, ignore_removed=True, filters={"label": [f"{GROUP}={self.group}", *labels]}
        )


@pytest.fixture
def nursery(image: str) -> Iterator[Containers]:
    nursery = Containers(image)
    yield nursery
    nursery.close()


class TestDocker(LauncherContract): ...


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the client's own socket
def test_without_an_engine_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(LauncherError, match="start it, or set DOCKER_HOST"):
        DockerLauncher(ContainerSpec(group="test", image="none", command=[]))
    gc.collect()


def test_an_engine_that_this_user_may_not_use_is_one_line(engine: None, tmp_path: Path) -> None:
    """Tried by another user, who is in no group."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if os.getuid() != 0 or not host.startswith("unix:") or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user, and only a socket has an owner")
    code = (
        "from autoscaler.live.launcher import LauncherError\n"
        "from autoscaler.live.launchers.docker import ContainerSpec, DockerLauncher\n"
        "try: DockerLauncher(ContainerSpec(group='test', image='none', command=[]))\n"
        "except LauncherError as failed: print(failed)\n"
    )
    another = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-B", "-c", code]
    environ = os.environ | {"HOME": "/nonexistent", "DOCKER_HOST": host}
    done = subprocess.run(another, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (
        done.stdout == "Docker may not be used by this user: join the group docker, or set DOCKER_HOST to a proxy\n"
    ), done


def test_an_image_that_is_not_there_is_a_failed_start_in_one_line(nursery: Containers) -> None:
    nursery.image = "tailpack:never-built"
    launcher = nursery.launcher()
    instance = launcher.start("payment-0")
    instance.thread.join(30)
    ended = instance.exit()
    assert ended is not None
    assert not ended.clean
    assert ended.how == "image tailpack:never-built is not there: build it, or pull it"


def test_a_container_that_is_being_removed_is_nobody_to_adopt(
    nursery: Containers, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = nursery.launcher().start("payment-0")
    assert instance.begun.wait(30)
    (container,) = nursery._found()
    container.attrs["State"]["Status"] = "removing"
    with monkeypatch.context() as while_it_goes:
        while_it_goes.setattr(ContainerCollection, "list", lambda *_, **__: [container])
        assert list(nursery.launcher().left_behind()) == []


class Proxied(Containers):
    """The same through the proxy, which is all that the launchers see of the engine."""

    def __init__(self, image: str, volume: str = "") -> None:
        super().__init__(image)
        self.volume = volume
        settings = ProxySettings(
            docker_image=image,
            docker_volume=volume,
            group=self.group,
            engine_socket=urlsplit(os.environ["DOCKER_HOST"]).path,
            http_port=1,
        )
        self.proxy = SocketProxy(dataclasses.replace(settings, http_port=free_port()), self.group)
        self._thread = threading.Thread(target=self.proxy.serve)
        self._thread.start()
        self.address = f"tcp://127.0.0.1:{self.proxy.port}"

    def launcher(self, **environ: str) -> DockerLauncher:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("DOCKER_HOST", self.address)
            return super().launcher(**environ)

    def close(self) -> None:
        super().close()
        self.proxy.close()
        self._thread.join()


@pytest.fixture
def proxied(image: str) -> Iterator[Proxied]:
    if not os.environ.get("DOCKER_HOST", "unix:///").startswith("unix:"):
        pytest.skip("the engine is not reached by a socket here")
    nursery = Proxied(image)
    yield nursery
    nursery.close()


class TestThroughTheProxy(LauncherContract):
    @pytest.fixture
    def nursery(self, proxied: Proxied) -> Proxied:
        return proxied


def test_the_proxy_lets_nobody_else_be_touched_and_nothing_else_be_started(proxied: Proxied, image: str) -> None:
    engine, through = docker.from_env(), docker.DockerClient(proxied.address)
    stranger = engine.containers.create(image, ["true"], name=f"stranger-{proxied.group}")
    allowed = ContainerSpec(group=proxied.group, image=image, command=["true"]).options("payment-0")
    try:
        assert through.containers.list(all=True) == []
        for act in (stranger.id, stranger.name):
            with pytest.raises(APIError, match="refused by the proxy"):
                through.containers.get(act)
        refused = (
            lambda: through.api.start(stranger.id),
            lambda: through.api.kill(stranger.id),
            lambda: through.api.remove_container(stranger.id),
            lambda: through.api.rename(stranger.id, f"{proxied.group}.mine"),
            through.images.list,
            lambda: through.volumes.create("mine"),
            lambda: through.api.exec_create(stranger.id, "id"),
            lambda: through.containers.create(**allowed | {"image": "apache/kafka:4.3.1"}),
            lambda: through.containers.create(**allowed | {"name": "another"}),
        )
        for ask in refused:
            with pytest.raises(APIError, match="refused by the proxy"):
                ask()
        asked = {"privileged": True, "volumes": ["/:/host"], "pid_mode": "host", "network_mode": "host", "user": "root"}
        made = engine.containers.get(through.containers.create(**allowed | asked).id)
        host = made.attrs["HostConfig"]
        assert not host["Privileged"]
        assert not host["Binds"]
        assert not made.attrs["Mounts"]
        assert (host["PidMode"], host["NetworkMode"]) == ("", "default")
        assert made.attrs["Config"]["User"] not in {"", "0", "root"}
        assert (made.labels[GROUP], made.labels[REPLICA]) == (proxied.group, "payment-0")
    finally:
        stranger.remove(force=True)
        engine.close()
        through.close()


def test_replicas_read_the_volume_that_holds_their_login_and_cannot_write_it(proxied: Proxied, image: str) -> None:
    engine = docker.from_env()
    volume = engine.volumes.create()
    written = ["sh", "-c", "echo security.protocol=SASL_SSL >/login/client.properties"]
    mounted = [f"{volume.name}:/login"]
    nursery = Proxied(image, mounted[0])
    try:
        engine.containers.run(image, written, user="0", volumes=mounted, remove=True)
        instance = nursery.launcher().start("payment-0")
        assert instance.begun.wait(30)
        (container,) = nursery._found()
        assert container.exec_run(["cat", "/login/client.properties"]).output == b"security.protocol=SASL_SSL\n"
        refused = container.exec_run(["touch", "/login/client.properties"], user="0")
        assert b"Read-only file system" in refused.output
    finally:
        nursery.close()
        volume.remove(force=True)
        engine.close()


def test_the_start_of_a_container_is_measured(image: str) -> None:
    done = tailpack("bench", "startup", "--launcher", "docker", "--image", image, "--json", deadline_s=200)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["launcher"] == "docker"
    assert found["n"] >= 1
    assert 0 < found["asked_to_ready_p50_s"] <= found["p99_s"]
