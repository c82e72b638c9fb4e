"""A Kubernetes cluster, by kubectl: manifests in their own namespace, and what keeps their pods from being ready."""

import json
import os
import subprocess
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from autoscaler.live.launchers.pods import STUCK_REASONS, pod_of
from autoscaler.live.settings import kubeconfig
from bench import BenchError
from contracts.clock import monotonic_s

MANIFESTS: Final = Path(__file__).parents[1] / "infra" / "k8s"
KIND: Final = MANIFESTS / "overlays" / "kind"
READY_TIMEOUT_S: Final = 300.0
"""Maximum time until services are ready, including the time to pull images."""
STUCK_TIMEOUT_S: Final = 60.0
"""A run fails if a pod crashes, or waits for an image, a node or a quota, and nothing changes for this time."""
POLL_INTERVAL_S: Final = 1.0
REQUEST_S: Final = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A Kubernetes cluster, and what is applied to it."""

    context: str = ""
    """Context in the kubeconfig; empty: the current one."""
    overlay: Path = KIND
    images: Mapping[str, str] = field(default_factory=dict)
    """Name of an image in the manifests → NAME:TAG of the image that the cluster pulls."""

    def kubectl(self, *words: str, namespace: str = "", stdin: str | None = None, may_fail: bool = False) -> bytes:
        """Return the output of kubectl. Raises BenchError."""
        target = (("--context", self.context), ("--namespace", namespace))
        command = ["kubectl", *(word for pair in target if pair[1] for word in pair), *words]
        try:
            done = subprocess.run(
                command, input=stdin and stdin.encode(), capture_output=True, check=False, timeout=REQUEST_S
            )
        except FileNotFoundError:
            raise BenchError("kubectl is not installed: see https://kubernetes.io/docs/tasks/tools") from None
        except subprocess.TimeoutExpired as error:
            raise BenchError(
                f"kubectl {words[0]}: no answer within {REQUEST_S:.0f} s; check that the cluster runs"
            ) from error
        if done.returncode and not may_fail:
            last_line = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            if "localhost:8080" in last_line:  # the default of kubectl without kubeconfig
                raise BenchError(f"kubeconfig {kubeconfig()} has no cluster: set KUBECONFIG")
            raise BenchError(f"kubectl {words[0]} failed: {last_line or 'no message'} (kubeconfig {kubeconfig()})")
        return bytes(done.stdout)


class Namespace:
    """A namespace of a cluster."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name, self.kubectl = cluster, name, partial(cluster.kubectl, namespace=name)

    def get(self, *words: str) -> Any:
        """Return the JSON of `kubectl get`; for a list, its items."""
        found = json.loads(self.kubectl("get", *words, "-o", "json"))
        return found.get("items", found)

    def pods(self, app: str = "") -> list[dict[str, Any]]:
        """Return the pods of `app`, or all pods, without those that are being deleted."""
        selected = ["-l", f"app={app}"] if app else []
        return [pod for pod in self.get("pods", *selected) if "deletionTimestamp" not in pod["metadata"]]

    def apply(
        self,
        *,
        replicas: Mapping[str, int] | None = None,
        settings: Mapping[str, str] | None = None,
        components: Sequence[str] = (),
    ) -> None:
        """Apply the cluster's overlay to this namespace, changed by replica counts, settings and components."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary).resolve()
            merged = {"literals": [f"{key}={value}" for key, value in (settings or {}).items()]}
            kustomization = {
                "resources": [os.path.relpath(self.cluster.overlay.resolve(), folder)],
                "components": [os.path.relpath(MANIFESTS / "components" / each, folder) for each in components],
                "namespace": self.name,
                "sortOptions": {"order": "legacy"},  # the namespace first
                "images": [_image(name, target) for name, target in self.cluster.images.items()],
                "replicas": [{"name": each, "count": count} for each, count in (replicas or {}).items()],
                "configMapGenerator": [{"name": "settings", "behavior": "merge"} | merged] if settings else [],
            }
            (folder / "kustomization.yaml").write_text(json.dumps(kustomization), encoding="utf-8")  # JSON is YAML
            self.cluster.kubectl("apply", "--kustomize", temporary)

    def obstacles(self) -> dict[str, str]:
        """Return object → reason why it is not ready: a missing image, no node, a quota, or a pod that has exited."""
        events, pods = self.get("events", "--field-selector", "reason=FailedCreate"), self.pods()
        owners = self.get("replicasets,statefulsets,jobs")
        missing = Counter({owner["metadata"]["name"]: owner["spec"].get("replicas", 1) for owner in owners})
        missing -= Counter(owner["name"] for pod in pods for owner in pod["metadata"].get("ownerReferences", ()))
        found = {name: event["message"] for event in events if (name := event["involvedObject"]["name"]) in missing}
        for pod, policy in [(pod_of(found_pod), found_pod["spec"].get("restartPolicy")) for found_pod in pods]:
            serves = pod.ready and policy != "OnFailure"  # a Job's pod is also ready between two failures
            if pod.exit and not pod.exit.is_clean and not serves:
                found[pod.name] = f"pod {pod.name} ended with {pod.exit.description}: {pod.last_log_line}"
            elif pod.waiting_reason.startswith(STUCK_REASONS):
                found[pod.name] = f"pod {pod.name}: {pod.waiting_reason}"
        return found

    def wait_until_ready(self, replicas: int, announce: Callable[[str], None]) -> None:
        """Wait until Jobs and brokers, then services and `replicas` Payment replicas, are ready. Raises BenchError."""
        began_s = since_s = monotonic_s()
        before = list[str]()
        while awaited := self._awaited_workloads(replicas):
            prefixes = tuple(f"{name}-" for name in awaited)
            obstacles = [why for name, why in self.obstacles().items() if f"{name}-".startswith(prefixes)]
            if not obstacles or awaited != before:
                before, since_s = awaited, monotonic_s()
            status = "; ".join([", ".join(awaited), *obstacles[:3]])
            announce(f"waiting for {status}")
            if monotonic_s() > min(since_s + STUCK_TIMEOUT_S, began_s + READY_TIMEOUT_S):
                raise BenchError(f"not ready after {monotonic_s() - began_s:.0f} s: {status}")
            time.sleep(POLL_INTERVAL_S)

    def delete(self) -> None:
        """Delete the namespace and wait until it is gone, because its pods would slow down the next run."""
        for _ in range(5):  # up to five minutes: on a busy node, pods stop late
            self.cluster.kubectl("delete", "namespace", self.name, "--ignore-not-found", "--timeout=55s", may_fail=True)

    def _awaited_workloads(self, replicas: int) -> list[str]:
        """Return the Jobs and brokers that are not ready. If all are, return the services that are not ready."""
        jobs = [job for job in self.get("jobs") if not (job["spec"].get("suspend") or job["status"].get("succeeded"))]
        first = jobs + [workload for workload in self.get("statefulsets") if _is_unready(workload, replicas)]
        found = first or [workload for workload in self.get("deployments") if _is_unready(workload, replicas)]
        return [workload["metadata"]["name"] for workload in found]


def _is_unready(workload: dict[str, Any], payments: int) -> bool:
    wanted = max(workload["spec"].get("replicas", 1), payments if workload["metadata"]["name"] == "payment" else 0)
    return bool(workload["status"].get("readyReplicas", 0) < wanted)


@contextmanager
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """Create a namespace, and delete it after the block. Raises BenchError, for example if no cluster answers."""
    cluster.kubectl("version", "--request-timeout=10s")  # raises before anything is created
    created = Namespace(cluster, f"tailpack-{uuid.uuid4().hex[:8]}")
    try:
        yield created
    finally:
        created.delete()


def _image(name: str, target: str) -> dict[str, str]:
    new, colon, tag = target.rpartition(":")
    tagged = colon and "/" not in tag
    return {"name": name, "newName": new, "newTag": tag} if tagged else {"name": name, "newName": target}
