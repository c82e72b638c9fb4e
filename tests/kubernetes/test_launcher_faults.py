"""The launcher during failures of pods, nodes and the API server."""

import re
import subprocess
from pathlib import Path

import pytest
from kafka_helpers import wait_for
from launcher_contract import World
from pod_nursery import Pods
from pods import api_server, kubectl

from contracts.clock import monotonic_s
from contracts.journal import ReplicaChange
from report.history import startup_times_us

WAITS = "CrashLoopBackOff: .*; its last exit: killed by SIGKILL: OOMKilled"


def test_an_exited_container_shows_its_status_and_its_pod_is_used_again(nursery: Pods) -> None:
    """First it exits by itself, then it runs out of memory; after the second exit the kubelet backs off."""
    world = World(nursery, nursery.launcher())
    world.scaler.request(["payment-0"])
    world.wait_for_report()
    world.until(ReplicaChange.READY)
    before = [one["metadata"]["uid"] for one in nursery.pods()]
    ends = {
        "SIGUSR1": "exit status 3; last log line: the disk is full",
        "SIGUSR2": "killed by SIGKILL: OOMKilled; last log line: {",
    }
    for signal, description in ends.items():
        last = world.wait_for_report()
        world.changes.clear()
        report(nursery, "payment-0", signal)
        assert world.until(ReplicaChange.DIED).detail.startswith(description)
        assert world.scaler.evictions[-1].incarnation == last.incarnation
        world.until(ReplicaChange.STARTED)
        if signal == "SIGUSR2":
            wait_for(lambda: re.search(WAITS, world.launcher.problem), "why it waits")
        wait_for(lambda last=last: world.wait_for_report().incarnation != last.incarnation, "its successor reports")
        world.until(ReplicaChange.READY)
        assert ReplicaChange.START_FAILED not in [one.change for one in world.changes]
    assert [one["metadata"]["uid"] for one in nursery.pods()] == before


def test_a_pod_without_a_node_is_reported_and_its_start_up_time_includes_the_wait(nursery: Pods) -> None:
    nursery.node = {f"tailpack/{nursery.namespace}": ""}
    world = World(nursery, nursery.launcher())
    asked_s = monotonic_s()
    world.scaler.request(["payment-0"])

    def look() -> bool:
        world.scaler.reconcile(world.reports)
        return world.scaler.is_ready("payment-0")

    wait_for(lambda: look() or "Unschedulable" in world.launcher.problem, "why it waits")
    assert not world.scaler.is_ready("payment-0")
    waited_s = monotonic_s() - asked_s
    node = kubectl("get", "nodes", "-o", "name").split()[0]
    (label,) = nursery.node
    kubectl("label", node, f"{label}=")
    try:
        world.wait_for_report()
        wait_for(look, "it is ready")
    finally:
        kubectl("label", node, f"{label}-")
    assert ReplicaChange.START_FAILED not in [one.change for one in world.changes], "to wait is no failure"
    assert not world.launcher.problem
    assert world.scaler.starting_s("payment-0") > waited_s
    assert startup_times_us(world.changes)[0] / 1e6 > waited_s


@pytest.mark.parametrize("fault", ["suspend", "kill"])
def test_replicas_keep_running_without_the_api_server(fault: str, nursery: Pods, cluster_tool: Path) -> None:
    world = World(nursery, nursery.launcher())
    world.scaler.request(["payment-0"])
    first = world.wait_for_report()
    world.until(ReplicaChange.READY)
    server = api_server()
    getattr(server, fault)()
    try:
        world.scaler.request(["payment-0", "payment-1"])
        wait_for(lambda: "no answer within" in world.launcher.problem, "the problem is reported")
        world.scaler.reconcile(world.reports)
        assert world.scaler.is_ready("payment-0")
    finally:
        if fault == "suspend":
            server.resume()
        else:
            subprocess.run([str(cluster_tool), "up"], check=True, capture_output=True, timeout=120)
    world.wait_for_report("payment-1")
    world.until(ReplicaChange.READY, "payment-1")
    wait_for(lambda: not world.launcher.problem, "the problem has ended")
    assert world.wait_for_report().incarnation == first.incarnation


def report(nursery: Pods, name: str, signal: str) -> None:
    """Send a signal to the process of a replica."""
    pod = nursery.named(name)[0]["metadata"]["name"]
    code = f"import os, signal; os.kill(1, signal.{signal})"
    command = ["kubectl", "--namespace", nursery.namespace, "exec", pod, "--", "python", "-c", code]
    subprocess.run(command, capture_output=True, check=False, timeout=60)  # its own end may come with the container's
