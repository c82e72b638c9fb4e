"""Run scenarios on Kubernetes. Each run has its own namespace, with a Job that sends the load and makes the report."""

import io
import json
import os
import subprocess
import tarfile
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final

from autoscaler.live.launchers.pods import STUCK_REASONS, last_line, pod_of
from autoscaler.live.settings import kubeconfig
from autoscaler.policies.registry import policy_factory
from bench import BenchError
from bench.benchmark import Benchmark, Option, Row, Tools
from bench.scenario import Scenario, load_scenario, scenario_names
from contracts.clock import monotonic_s
from contracts.waiting import WaitTimeoutError, until
from loadgen.spec import Topology
from report.result import Result

MANIFESTS: Final = Path(__file__).parents[1] / "infra" / "k8s"
KIND: Final = MANIFESTS / "overlays" / "kind"
READY_TIMEOUT_S: Final = 300.0
"""Maximum time until services are ready, including the time to pull images."""
EXTRA_RUN_S: Final = 900.0
"""Maximum time for start, drain and report, in addition to the duration of the scenario."""
STUCK_TIMEOUT_S: Final = 60.0
"""A run fails if a pod crashes, or waits for an image, a node or a quota, and nothing changes for this time."""
POLL_INTERVAL_S: Final = 1.0
REQUEST_S: Final = 60.0
FAUST_SERVICES: Final = ("order", "shipment", "notification")
FIGURES: Final = (
    *("scenario", "policy", "seed", "events", "in_sla", "p50_s", "p99_s", "p999_s", "max_s", "replica_minutes"),
    *("scale_ups", "scale_downs", "reassignments", "moved_partitions", "lost", "valid"),
)
"""Fields of the run's result that are copied into the row."""


@dataclass(kw_only=True)
class ClusterRuns(Benchmark):
    """Run scenarios on a Kubernetes cluster, each in its own namespace, and write the files to --out."""

    scenarios: Annotated[list[str], Option("Names of scenarios, for example w1 taxi.", positional=True)]
    policy: Annotated[list[str], Option("Policy to run. Repeatable.")] = field(default_factory=lambda: ["tail-aware"])
    seeds: Annotated[int, Option("Runs per scenario and policy, with seeds 1, 2, …", least=1)] = 1
    duration: Annotated[
        float, Option("Send only the first part of the load, of this length; 0: the whole load.", time=True)
    ] = 0.0
    context: Annotated[str, Option("Context in the kubeconfig; default: its current one.")] = ""
    overlay: Annotated[str, Option("Kustomize folder that is applied; default: infra/k8s/overlays/kind.")] = ""
    image: Annotated[str, Option("Image of services, autoscaler and load.")] = "tailpack:0.1.0"
    report_image: Annotated[str, Option("Image of the report.")] = "tailpack-report:0.1.0"
    out: Annotated[str, Option("Folder in which each run gets a folder.")] = "out"

    def cases(self) -> Sequence[str]:
        """Return scenario, policy and seed of each run, seed by seed. Raises ValueError."""
        for name in self.policy:
            policy_factory(name)
        runs = product(range(1, self.seeds + 1), [load_scenario(name).name for name in self.scenarios], self.policy)
        return [f"{scenario} {policy} {seed}" for seed, scenario, policy in runs]

    def measure(self, case: str, tools: Tools) -> Row:
        """Run one case on the cluster, and fetch its files."""
        name, policy, seed = case.split()
        changes = {"autoscaler.policy": policy, "seed": int(seed), "duration_s": round(self.duration) or None}
        images = {"tailpack": self.image, "tailpack-report": self.report_image}
        cluster = Cluster(context=self.context, overlay=Path(self.overlay or KIND), images=images)
        folder = Path(self.out, f"{case.replace(' ', '-')}-{time.strftime('%Y%m%d-%H%M%S')}")
        run_on_cluster(load_scenario(name, changes), cluster, folder, lambda status: tools.announce(status=status))
        result = Result.load(folder)
        return {figure: getattr(result, figure) for figure in FIGURES} | {
            "lateness_p99_s": result.lateness.p99_s,
            "start_max_s": result.starts.max_s if result.starts else None,
        }


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


def run_on_cluster(scenario: Scenario, cluster: Cluster, folder: Path, announce: Callable[[str], None]) -> None:
    """Run a built-in scenario on the cluster, and write the files of the run into `folder`. Raises BenchError."""
    if scenario.name not in scenario_names():
        raise BenchError(f"{scenario.name}: a cluster runs only the built-in scenarios; see tailpack list scenarios")
    if scenario.payment.runtime:
        raise BenchError(f"{scenario.name}: runtime {scenario.payment.runtime!r} is not supported on a cluster")
    with namespace(cluster) as target:
        announce("applying the overlay")
        target.apply(
            replicas={} if scenario.topology is Topology.PIPELINE else dict.fromkeys(FAUST_SERVICES, 0),
            settings={f"TAILPACK_{key}": value for key, value in _settings(scenario, target.name).items()},
            components=("run",),
        )
        target.wait_until_ready(scenario.autoscaler.initial_replicas, announce)
        target.kubectl("patch", "job", "run", "--patch", '{"spec": {"suspend": false}}')
        pod = _wait_for_report(target, scenario.duration_s + EXTRA_RUN_S, announce)
        announce("fetching the files")
        command = ("exec", pod, "--container", "results", "--", "tar", "-C", f"/out/{target.name}", "-cf", "-", ".")
        files = target.kubectl(*command)
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(files)) as packed:
        packed.extractall(folder, filter="data")


def _image(name: str, target: str) -> dict[str, str]:
    new, colon, tag = target.rpartition(":")
    tagged = colon and "/" not in tag
    return {"name": name, "newName": new, "newTag": tag} if tagged else {"name": name, "newName": target}


def _settings(scenario: Scenario, namespace: str) -> dict[str, str]:
    """Return the settings of all pods. `namespace` is part of the names of their topics."""
    return scenario.autoscaler_settings() | {
        "NAMESPACE": namespace,
        "PIPELINE_PARTITIONS": str(scenario.pipeline_partitions),
        "SCENARIO": scenario.name,
        "LOAD_OPTIONS": f"--seed {scenario.seed} --duration {scenario.duration_s:.0f}s",
    }


def _wait_for_report(place: Namespace, within_s: float, announce: Callable[[str], None]) -> str:
    """Wait until the report exists; return the pod with the files of the run. Raises BenchError."""
    began_s = monotonic_s()

    def pod() -> str:
        announce(f"load and report, {monotonic_s() - began_s:.0f} s")
        if place.get("job", "run")["status"].get("failed"):
            log = place.kubectl("logs", "job/run", "--all-containers", "--tail", "1", may_fail=True).decode()
            raise BenchError(f"load or report failed: {last_line(log)}")
        for pod in place.pods("run"):
            if any("running" in container["state"] for container in pod["status"].get("containerStatuses", ())):
                return str(pod["metadata"]["name"])
        return ""

    try:
        return until(pod, within_s, "the run has a report", POLL_INTERVAL_S)
    except WaitTimeoutError as error:
        raise BenchError("; ".join([str(error), *place.obstacles().values()])) from error
