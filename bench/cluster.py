"""A run on a Kubernetes: a namespace of its own, load and report as a Job, and the files that any run has."""

import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from autoscaler.live.launchers.pods import STUCK, pod_of
from autoscaler.live.settings import kubeconfig
from bench.scenario import Scenario, scenario_names
from bench.startup import Startup
from contracts.clock import steady_s
from loadgen.spec import Topology

MANIFESTS: Final = Path(__file__).parents[1] / "infra" / "k8s"
READY_S: Final = 300.0
"""Images are pulled meanwhile."""
STUCK_S: Final = 30.0
"""What is stuck so long does not come right by itself; a node that is added does within a minute or two."""
OVER_S: Final = 900.0
"""Beyond the scenario's length: start, drain and report."""
POLL_S: Final = 1.0
ASK_S: Final = 60.0


class ClusterError(Exception):
    """The cluster is not there, not as it must be, or refuses: one sentence with what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Which cluster, and what is applied there."""

    context: str = ""
    """Of the kubeconfig; empty: its current one."""
    overlay: Path = MANIFESTS / "overlays" / "kind"
    images: Mapping[str, str] = field(default_factory=dict)
    """Image in the manifests → what it is there, NAME:TAG."""

    def kubectl(self, *words: str, namespace: str = "", given: str | None = None) -> bytes:
        """Return what kubectl prints. Raises ClusterError."""
        if shutil.which("kubectl") is None:
            raise ClusterError("kubectl is not installed: see https://kubernetes.io/docs/tasks/tools")
        where = [
            *(["--context", self.context] if self.context else []),
            *(["--namespace", namespace] if namespace else []),
        ]
        command = ["kubectl", *where, *words]
        try:
            done = subprocess.run(
                command, input=given and given.encode(), capture_output=True, check=False, timeout=ASK_S
            )
        except subprocess.TimeoutExpired as silent:
            raise ClusterError(f"the cluster does not answer within {ASK_S:.0f} s: kubectl {words[0]}") from silent
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise ClusterError(f"kubectl {words[0]}: {said or 'failed'} (kubeconfig {kubeconfig()})")
        return bytes(done.stdout)


class Namespace:
    """A namespace and what was applied there."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    def kubectl(self, *words: str, given: str | None = None) -> bytes:
        """Return what kubectl prints. Raises ClusterError."""
        return self.cluster.kubectl(*words, namespace=self.name, given=given)

    def get(self, *words: str) -> Any:
        """Return the JSON of `kubectl get`; a list's items."""
        found = json.loads(self.kubectl("get", *words, "-o", "json"))
        return found.get("items", found)

    def pods(self, app: str = "") -> list[dict[str, Any]]:
        """Return the pods, of one app where it is named, that are not on their way out."""
        selected = ["-l", f"app={app}"] if app else []
        return [one for one in self.get("pods", *selected) if "deletionTimestamp" not in one["metadata"]]

    def ready(self, app: str) -> int:
        """Return how many pods of an app are Ready."""
        return sum(pod_of(raw).ready for raw in self.pods(app))

    def apply(
        self,
        *,
        replicas: Mapping[str, int] | None = None,
        settings: Mapping[str, str] | None = None,
        components: Sequence[str] = (),
        patches: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Apply the cluster's overlay here, with other counts, settings and patches (as kustomize has them)."""
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made).resolve()
            here = {
                "resources": [os.path.relpath(self.cluster.overlay.resolve(), folder)],
                "components": [os.path.relpath(MANIFESTS / "components" / each, folder) for each in components],
                "namespace": self.name,
                "sortOptions": {"order": "legacy"},  # the namespace first
                "images": [_image(name, there) for name, there in self.cluster.images.items()],
                "replicas": [{"name": each, "count": count} for each, count in (replicas or {}).items()],
                "patches": list(patches),
                "configMapGenerator": [
                    {"name": "settings", "behavior": "merge", "literals": [f"{k}={v}" for k, v in settings.items()]}
                ]
                if settings
                else [],
            }
            (folder / "kustomization.yaml").write_text(json.dumps(here), encoding="utf-8")  # YAML, too
            self.cluster.kubectl("apply", "--kustomize", made)

    def stuck(self) -> str:
        """Return why a pod does not run and will not by itself; empty: none is known."""
        seen = [pod_of(raw) for raw in self.pods()]
        return next((f"pod {one.name}: {one.waits}" for one in seen if one.waits.startswith(STUCK)), "")


@contextmanager
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """Yield a fresh one; it is deleted with all that is in it."""
    made = Namespace(cluster, f"tailpack-{uuid.uuid4().hex[:8]}")
    try:
        yield made
    finally:
        cluster.kubectl("delete", "namespace", made.name, "--wait=false", "--ignore-not-found")


def startup_there(cluster: Cluster, announce: Callable[[str], None]) -> Startup:
    """Measure there how long replicas take to start. Raises ClusterError."""
    with namespace(cluster) as place:
        announce("all is applied, with the images that there are")
        place.apply(replicas=dict.fromkeys((*_FAUST, "autoscaler", "payment"), 0), components=("startup",))
        _until_ready(place, 0, announce)
        _begin(place, "startup")
        began_s = steady_s()
        while steady_s() < began_s + READY_S:
            pods = place.pods("autoscaler")
            for said in _failures(pods):
                raise ClusterError(said)
            if any(raw.get("status", {}).get("phase") == "Succeeded" for raw in pods):
                last = place.kubectl("logs", "job/startup").decode().strip().rpartition("\n")[2]
                return msgspec.json.decode(last, type=Startup)
            announce(f"replicas start, {steady_s() - began_s:.0f} s; {place.stuck()}".rstrip("; "))
            time.sleep(POLL_S)
        raise ClusterError(f"no figures after {READY_S:.0f} s; {place.stuck()}".rstrip("; "))


def run_there(scenario: Scenario, cluster: Cluster, folder: Path, announce: Callable[[str], None]) -> None:
    """Run a delivered scenario there, and put the files of the run into `folder`. Raises ClusterError."""
    if scenario.name not in scenario_names():
        raise ClusterError(f"{scenario.name}: pods know only the scenarios that are delivered; see tailpack scenarios")
    if scenario.payment.runtime:
        raise ClusterError(f"{scenario.name}: on a cluster replicas are ours, not {scenario.payment.runtime}'s")
    with namespace(cluster) as place:
        announce("all is applied, with the images that there are")
        place.apply(
            replicas={} if scenario.topology is Topology.PIPELINE else dict.fromkeys(_FAUST, 0),
            settings={f"TAILPACK_{key}": value for key, value in scenario.autoscaler_settings().items()}
            | {"TAILPACK_NAMESPACE": place.name},  # the brokers may be others' too, and those of earlier runs
            components=("run",),
            patches=list(_patches(scenario)),
        )
        _until_ready(place, scenario.autoscaler.initial_replicas, announce)
        _begin(place, "run")
        pod = _until_reported(place, scenario.duration_s + OVER_S, announce)
        announce("files are fetched")
        files = place.kubectl(
            "exec", pod, "--container", "results", "--", "tar", "-C", f"/out/{place.name}", "-cf", "-", "."
        )
    with tarfile.open(fileobj=io.BytesIO(files)) as packed:
        packed.extractall(folder, filter="data")


_FAUST: Final = ("order", "shipment", "notification")


def _image(name: str, there: str) -> dict[str, str]:
    new, colon, tag = there.rpartition(":")
    return (
        {"name": name, "newName": new, "newTag": tag} if colon and "/" not in tag else {"name": name, "newName": there}
    )


def _patches(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Yield which topics, which load and which policy."""
    named = ("bootstrap-servers", "namespace", "client-properties")
    kafka = " ".join(f'--{one} "$TAILPACK_{one.upper().replace("-", "_")}"' for one in named)
    asked = f"--policy {scenario.autoscaler.policy} --seed {scenario.seed} --duration-s {scenario.duration_s:.0f}"
    load = f"exec tailpack load {scenario.name} {asked} {kafka} --out /out"
    yield _words("topics", "containers", f"exec tailpack topics create {scenario.name} {kafka}")
    yield _words("run", "initContainers", load)
    policy = [{"name": "TAILPACK_POLICY", "value": scenario.autoscaler.policy}]
    pod = {"spec": {"containers": [{"name": "autoscaler", "env": policy}]}}
    changed = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "autoscaler"}}
    yield {"patch": json.dumps(changed | {"spec": {"template": pod}})}


def _words(job: str, containers: str, words: str) -> dict[str, Any]:
    """Return the patch that has the Job's first container run these words of a shell."""
    change = {"op": "replace", "path": f"/spec/template/spec/{containers}/0/args", "value": ["sh", "-c", words]}
    return {"target": {"kind": "Job", "name": job}, "patch": json.dumps([change])}


def _begin(place: Namespace, job: str) -> None:
    place.kubectl("patch", "job", job, "--patch", '{"spec": {"suspend": false}}')


def _failures(pods: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each container that ended badly."""
    for raw in pods:
        for container, state in _states(raw).items():
            ended = state.get("terminated", {})
            if ended.get("exitCode"):
                said = ended.get("message", ended.get("reason", "")).strip().rpartition("\n")[2]
                yield f"{container} ended with status {ended['exitCode']}: {said}"


def _states(raw: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return container → its state, in the order in which they run."""
    status = raw.get("status", {})
    both = status.get("initContainerStatuses", []) + status.get("containerStatuses", [])
    return {one["name"]: one["state"] for one in both}


def _until_ready(place: Namespace, replicas: int, announce: Callable[[str], None]) -> None:
    began_s = stuck_since_s = steady_s()
    while True:
        jobs = [one for one in place.get("jobs") if not one["spec"].get("suspend")]
        missing = [one["metadata"]["name"] for one in jobs if not one["status"].get("succeeded")]
        for one in place.get("deployments,statefulsets"):
            name, wanted = one["metadata"]["name"], one["spec"].get("replicas", 1)
            wanted = max(wanted, replicas) if name == "payment" else wanted
            if one["status"].get("readyReplicas", 0) < wanted:
                missing.append(name)
        if not missing:
            return
        announce(f"waiting for {', '.join(missing)}")
        stuck = place.stuck()
        stuck_since_s = stuck_since_s if stuck else steady_s()
        late = steady_s() > began_s + READY_S
        if late or steady_s() > stuck_since_s + STUCK_S:
            raise ClusterError(
                f"not ready after {steady_s() - began_s:.0f} s: {', '.join(missing)}; {stuck}".rstrip("; ")
            )
        time.sleep(POLL_S)


def _until_reported(place: Namespace, within_s: float, announce: Callable[[str], None]) -> str:
    """Wait until the files of the run can be fetched; return the pod that has them."""
    began_s = steady_s()
    while steady_s() < began_s + within_s:
        pods = place.pods("run")
        for said in _failures(pods):
            raise ClusterError(said)
        for raw in pods:
            states = _states(raw)
            if "running" in states.get("results", {}):
                return str(raw["metadata"]["name"])
            doing = next((name for name, state in states.items() if "running" in state), "the pod")
            announce(f"{doing}, {steady_s() - began_s:.0f} s; {place.stuck()}".rstrip("; "))
        time.sleep(POLL_S)
    raise ClusterError(f"the run has no report after {within_s:.0f} s; {place.stuck()}".rstrip("; "))
