"""Deploy tailpack into a Kubernetes namespace by kustomize, and query it by kubectl."""

import json
import os
import re
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
import yaml
from http_answer import http_answer
from kafka_helpers import wait_for

from autoscaler.live.launchers.pods import pod_of
from bench.cluster import MANIFESTS, Cluster, Namespace

ROOT = Path(__file__).parents[2]
READY_S = 180.0
AUDIT = "log/audit.log"
"""Path below the kubeconfig's folder, if this machine runs the API server."""


def kubectl(*words: str, given: str | None = None, deadline_s: float = READY_S) -> str:
    """Return the output of kubectl; fail with its error."""
    done = subprocess.run(
        ["kubectl", *words], input=given, capture_output=True, text=True, check=False, timeout=deadline_s
    )
    assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
    return done.stdout


class Deployed(Namespace):
    """A namespace with its deployed objects."""

    def __init__(self, image: str, overlay: str = "kind") -> None:
        there = Cluster(overlay=MANIFESTS / "overlays" / overlay, images={"tailpack": image})
        super().__init__(there, f"k8s-{uuid.uuid4().hex[:8]}")

    def delete(self) -> None:
        """Delete the namespace; its pods end while the next test starts."""
        kubectl("delete", "namespace", self.name, "--ignore-not-found", "--wait=false")

    def ready(self, app: str) -> int:
        """Return the number of Ready pods of an app."""
        return sum(pod_of(raw).ready for raw in self.pods(app))

    def wait_ready(self, **counts: int) -> None:
        """Wait until each app has the given number of pods and all are Ready."""
        for app, count in counts.items():
            wait_for(
                lambda app=app, count=count: self.ready(app) == len(self.pods(app)) == count,
                f"{count} of {app} Ready in {self.name}",
                deadline_s=READY_S,
                every_s=0.5,
            )

    @contextmanager
    def forwarded(self, target: str, port: int = 8080) -> Iterator[Callable[..., tuple[int, Any]]]:
        """Yield a function (path, body, headers) → status code and JSON of a pod's or a Service's HTTP interface."""
        command = ["kubectl", "--namespace", self.name, "port-forward", target, f":{port}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
            try:
                assert forward.stdout is not None
                found = re.search(r"127\.0\.0\.1:(\d+)", forward.stdout.readline())
                assert found, f"{target} is not forwarded"
                yield lambda path, body=None, headers=None: _asked(f"http://127.0.0.1:{found[1]}{path}", body, headers)
            finally:
                forward.terminate()

    def api_requests(self) -> list[dict[str, Any]]:
        """Return the autoscaler's entries in the API server's audit log; skip if that log is not on this machine."""
        audit = Path(os.environ["KUBECONFIG"]).parent / AUDIT
        if not audit.exists():
            pytest.skip("the API server's audit log is not on this machine")
        user = f"system:serviceaccount:{self.name}:autoscaler"
        events = [json.loads(line) for line in audit.read_text().splitlines() if user in line]
        return [event for event in events if event["user"]["username"] == user and "objectRef" in event]

    @property
    def broker(self) -> str:
        """Address of the temporary broker for clients on this machine."""
        return f"{self.pods('kafka')[0]['status']['podIP']}:9092"


def _asked(url: str, body: bytes | None, headers: dict[str, str] | None) -> tuple[int, Any]:
    code, text = http_answer(url, body, {"Content-Type": "application/json"} | (headers or {}), timeout_s=10)
    return code, json.loads(text) if code else None


def api_server() -> psutil.Process:
    """Return its process, or skip if it does not run on this machine."""
    port = urlsplit(yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())["clusters"][0]["cluster"]["server"]).port
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
            return psutil.Process(connection.pid)
    pytest.skip("the API server does not run on this machine")
