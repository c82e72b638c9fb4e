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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from autoscaler.live.launchers.pods import pod_of
from autoscaler.live.settings import kubeconfig
from bench import BenchError
from bench.scenario import Scenario, scenario_names
from bench.startup import Startup
from bench.stuck import Hope, bad_ends, containers, waits
from contracts.clock import steady_s
from loadgen.spec import Topology

MANIFESTS: Final = Path(__file__).parents[1] / "infra" / "k8s"
READY_S: Final = 300.0
"""Images are pulled meanwhile."""
OVER_S: Final = 900.0
"""Beyond the scenario's length: start, drain and report."""
POLL_S: Final = 1.0
ASK_S: Final = 60.0
FAUST: Final = ("order", "shipment", "notification")
NO_CONFIG: Final = "localhost:8080"
"""Where kubectl goes by itself if nothing tells it of a cluster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Which cluster, and what is applied there."""

    context: str = ""
    """Of the kubeconfig; empty: its current one."""
    overlay: Path = MANIFESTS / "overlays" / "kind"
    images: Mapping[str, str] = field(default_factory=dict)
    """Image in the manifests → what it is there, NAME:TAG."""

    def kubectl(self, *words: str, namespace: str = "", given: str | None = None, may_fail: bool = False) -> bytes:
        """Return what kubectl prints. Raises BenchError."""
        if shutil.which("kubectl") is None:
            raise BenchError("kubectl is not installed: see https://kubernetes.io/docs/tasks/tools")
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
            raise BenchError(f"the cluster does not answer within {ASK_S:.0f} s: kubectl {words[0]}") from silent
        if done.returncode and not may_fail:
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            if NO_CONFIG in said:
                raise BenchError(f"no kubeconfig leads to a cluster ({kubeconfig()}): set KUBECONFIG")
            raise BenchError(f"kubectl {words[0]}: {said or 'failed'} (kubeconfig {kubeconfig()})")
        return bytes(done.stdout)


class Namespace:
    """A namespace and what was applied there."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    def kubectl(self, *words: str, given: str | None = None, may_fail: bool = False) -> bytes:
        """Return what kubectl prints. Raises BenchError."""
        return self.cluster.kubectl(*words, namespace=self.name, given=given, may_fail=may_fail)

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

    def refused(self) -> list[dict[str, Any]]:
        """Return the events of pods that could not be created: a quota, what pod security forbids."""
        return list(self.get("events", "--field-selector", "reason=FailedCreate"))


@contextmanager
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """Yield a fresh one; it is deleted with all that is in it. Raises BenchError, also where none answers."""
    cluster.kubectl("version", "--request-timeout=10s")  # whatever is in the way is told before anything is made
    made = Namespace(cluster, f"tailpack-{uuid.uuid4().hex[:8]}")

    def delete() -> None:
        cluster.kubectl("delete", "namespace", made.name, "--wait=false", "--ignore-not-found")

    try:
        yield made
    except BenchError as first:
        try:
            delete()
        except BenchError as second:
            raise BenchError(f"{first}; and namespace {made.name} could not be deleted: {second}") from first
        raise
    except BaseException:
        with suppress(BenchError):
            delete()
        raise
    delete()


def startup_there(cluster: Cluster, announce: Callable[[str], None]) -> Startup:
    """Measure there how long replicas take to start. Raises BenchError."""
    with namespace(cluster) as place:
        announce("all is applied, with the images that there are")
        place.apply(replicas=dict.fromkeys((*FAUST, "autoscaler", "payment"), 0), components=("startup",))
        until_ready(place, 0, announce)
        _begin(place, "startup")
        began_s = steady_s()
        while steady_s() < began_s + READY_S:
            pods = place.pods("autoscaler")
            for said in bad_ends(pods):
                raise BenchError(said)
            if any(raw.get("status", {}).get("phase") == "Succeeded" for raw in pods):
                last = place.kubectl("logs", "job/startup").decode().strip().rpartition("\n")[2]
                return msgspec.json.decode(last, type=Startup)
            announce(f"replicas start, {steady_s() - began_s:.0f} s; {'; '.join(waits(place.pods()))}".rstrip("; "))
            time.sleep(POLL_S)
        raise BenchError(f"no figures after {READY_S:.0f} s; {'; '.join(waits(place.pods()))}".rstrip("; "))


def run_there(scenario: Scenario, cluster: Cluster, folder: Path, announce: Callable[[str], None]) -> None:
    """Run a delivered scenario there, and put the files of the run into `folder`. Raises BenchError."""
    if scenario.name not in scenario_names():
        raise BenchError(
            f"{scenario.name}: pods know only the scenarios that are delivered; see tailpack list scenarios"
        )
    if scenario.payment.runtime:
        raise BenchError(f"{scenario.name}: on a cluster replicas are ours, not {scenario.payment.runtime}'s")
    with namespace(cluster) as place:
        announce("all is applied, with the images that there are")
        place.apply(
            replicas={} if scenario.topology is Topology.PIPELINE else dict.fromkeys(FAUST, 0),
            settings={f"TAILPACK_{key}": value for key, value in scenario.autoscaler_settings().items()}
            | {"TAILPACK_NAMESPACE": place.name},  # the brokers may be others' too, and those of earlier runs
            components=("run",),
            patches=list(_patches(scenario)),
        )
        until_ready(place, scenario.autoscaler.initial_replicas, announce)
        _begin(place, "run")
        pod = _until_reported(place, scenario.duration_s + OVER_S, announce)
        announce("files are fetched")
        files = place.kubectl(
            "exec", pod, "--container", "results", "--", "tar", "-C", f"/out/{place.name}", "-cf", "-", "."
        )
    with tarfile.open(fileobj=io.BytesIO(files)) as packed:
        packed.extractall(folder, filter="data")


def _image(name: str, there: str) -> dict[str, str]:
    new, colon, tag = there.rpartition(":")
    return (
        {"name": name, "newName": new, "newTag": tag} if colon and "/" not in tag else {"name": name, "newName": there}
    )


def _patches(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Yield which topics, which load and which policy."""
    named = ("bootstrap-servers", "namespace", "client-properties")
    kafka = " ".join(f'--{one} "$TAILPACK_{one.upper().replace("-", "_")}"' for one in named)
    asked = f"--policy {scenario.autoscaler.policy} --seed {scenario.seed} --duration {scenario.duration_s:.0f}s"
    load = f"exec tailpack dev load {scenario.name} {asked} {kafka} --out /out"
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


def until_ready(place: Namespace, replicas: int, announce: Callable[[str], None]) -> None:
    """Wait for all Jobs, brokers and services. Raises BenchError with the cause as soon as there is no use in it."""
    began_s, hope = steady_s(), Hope()
    while True:
        brokers = place.get("statefulsets")
        jobs = [one for one in place.get("jobs") if not one["spec"].get("suspend")]
        first = [one["metadata"]["name"] for one in brokers if not _has(one, replicas)]
        first += [one["metadata"]["name"] for one in jobs if not one["status"].get("succeeded")]
        others = [one["metadata"]["name"] for one in place.get("deployments") if not _has(one, replicas)]
        if not (missing := [*first, *others]):
            return
        pods = place.pods()
        failed = any(bad_ends([one for one in pods if _of(one["metadata"]["name"], first)]))
        refused = [one for one in place.refused() if _of(one["involvedObject"]["name"], missing)]
        there_is_hope = hope.look(missing, pods, refused, first_come=bool(first) and not failed)
        if failed and not brokers:  # Jobs are patient themselves, and these brokers should have been there before
            there_is_hope = False
        said = f"{', '.join(missing)}; {hope.causes}".rstrip("; ")
        announce(f"waiting for {said}")
        if not there_is_hope or steady_s() > began_s + READY_S:
            raise BenchError(f"not ready after {steady_s() - began_s:.0f} s: {said}")
        time.sleep(POLL_S)


def _has(one: Mapping[str, Any], replicas: int) -> bool:
    """Return whether it has its pods; `replicas` is what Payment shall have."""
    wanted = one["spec"].get("replicas", 1)
    wanted = max(wanted, replicas) if one["metadata"]["name"] == "payment" else wanted
    return bool(one["status"].get("readyReplicas", 0) >= wanted)


def _of(name: str, owners: Sequence[str]) -> bool:
    """Return whether it is one of them, or a ReplicaSet or pod of one."""
    return any(name == each or name.startswith(f"{each}-") for each in owners)


def _until_reported(place: Namespace, within_s: float, announce: Callable[[str], None]) -> str:
    """Wait until the files of the run can be fetched; return the pod that has them."""
    began_s = steady_s()
    while steady_s() < began_s + within_s:
        pods = place.pods("run")
        for said in bad_ends(pods):
            raise BenchError(said)
        for raw in pods:
            states = {one["name"]: one["state"] for one in containers(raw)}
            if "running" in states.get("results", {}):
                return str(raw["metadata"]["name"])
            doing = next((name for name, state in states.items() if "running" in state), "the pod")
            announce(f"{doing}, {steady_s() - began_s:.0f} s; {'; '.join(waits(place.pods()))}".rstrip("; "))
        time.sleep(POLL_S)
    raise BenchError(f"the run has no report after {within_s:.0f} s; {'; '.join(waits(place.pods()))}".rstrip("; "))
