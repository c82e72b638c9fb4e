"""The processes of a run are found, watched and stopped; none is left behind."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from kafka_helpers import wait_for

from autoscaler.live.launchers.processes import PidFile, process_identity
from bench.scenario import load_scenario
from contracts.children import python_module
from contracts.connection import Connection
from tailpack.local.stack import Stack, Supervised


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(load_scenario("smoke"), Connection(bootstrap_servers="kafka:9092", namespace="run-1"), tmp_path)


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that would stay for ever."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    yield process
    process.kill()
    process.wait(30)


def pid_file_of(stack: Stack, name: str, process: "subprocess.Popen[bytes]") -> Path:
    """Write down `process` as a replica, as the autoscaler's launcher does; return the pid file."""
    path = stack.replica_folder / "replicas" / f"{name}.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(msgspec.json.encode(PidFile(pid=process.pid, identity=process_identity(process.pid))))
    return path


def test_replicas_are_found_through_the_pid_files_of_the_autoscaler(
    stack: Stack, sleeper: "subprocess.Popen[bytes]"
) -> None:
    path = pid_file_of(stack, "payment-0", sleeper)
    assert stack.processes() == {"payment-0": sleeper.pid}
    older = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode(older | {"who": older["who"] + "0"}))
    assert stack.processes() == {}, "another process has that pid now"
    path.write_bytes(b"{")
    assert stack.processes() == {}, "half written"


def test_replicas_that_an_autoscaler_left_behind_are_stopped(stack: Stack, sleeper: "subprocess.Popen[bytes]") -> None:
    pid_file_of(stack, "payment-0", sleeper)
    stack.stop()
    wait_for(lambda: sleeper.poll() is not None, "the replica's end")
    assert stack.processes() == {}


def test_a_service_that_ends_is_restarted_but_the_generator_is_not(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("raise SystemExit(1)")
    environ = os.environ | {"PYTHONPATH": str(tmp_path)}
    for name in ("order", "locust"):
        stack.children.append(Supervised(name, python_module("ends"), environ, tmp_path / f"{name}.log"))
        stack.children[-1].start()
    stack.load_parts = stack.children[1:2]
    wait_for(lambda: all(child.exit_status is not None for child in stack.children), "both ends")
    (event,) = stack.supervise(0.0)
    assert re.match(r"order .* 0\.5 s", event)
    stack.stop()
