"""Runs on a Kubernetes: each has a namespace of its own, load and report as a Job, and the files that any run has."""

import io
import json
import os
import subprocess
import tarfile
import tempfile
import time
import uuid
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
READY_S: Final = 300.0
"""Images are pulled meanwhile."""
OVER_S: Final = 900.0
"""Beyond the scenario's length: start, drain and report."""
STUCK_S: Final = 60.0
"""A pod that waits for an image, a node or a quota, or crashes, is given up if nothing gets ready for this long."""
POLL_S: Final = 1.0
ASK_S: Final = 60.0
FAUST: Final = ("order", "shipment", "notification")
FIGURES: Final = (
    *("scenario", "policy", "seed", "events", "in_sla", "p50_s", "p99_s", "p999_s", "max_s", "replica_minutes"),
    *("scale_ups", "scale_downs", "reassignments", "moved_partitions", "lost", "valid"),
)
"""Fields of the run's result that a row has, too."""


@dataclass(kw_only=True)
class ClusterRuns(Benchmark):
    """Run scenarios on a Kubernetes one after the other, each in a namespace of its own; files go to --out."""

    scenarios: Annotated[list[str], Option("Names of scenarios, for example w1, taxi.", positional=True)]
    policy: Annotated[list[str], Option("May be repeated.")] = field(default_factory=lambda: ["tail-aware"])
    seeds: Annotated[int, Option("Runs of each, with seeds 1, 2, …", least=1)] = 1
    duration: Annotated[float, Option("Send only the first part of the load; 0: all.", time=True)] = 0.0
    context: Annotated[str, Option("Context of the kubeconfig; by default its current one.")] = ""
    overlay: Annotated[str, Option("Folder of kustomize that is applied.")] = str(MANIFESTS / "overlays" / "kind")
    image: Annotated[str, Option("Image of services, autoscaler and load.")] = "tailpack:0.1.0"
    report_image: Annotated[str, Option("Image of the report.")] = "tailpack-report:0.1.0"
    out: Annotated[str, Option("Folder that takes a folder for each run.")] = "out"

    def cases(self) -> Sequence[str]:
        """Return scenario, policy and seed of each run, seed by seed. Raises ValueError."""
        for name in self.policy:
            policy_factory(name)
        runs = product(range(1, self.seeds + 1), [load_scenario(one).name for one in self.scenarios], self.policy)
        return [f"{scenario} {policy} {seed}" for seed, scenario, policy in runs]

    def measure(self, case: str, tools: Tools) -> Row:
        """Run it there, and fetch its files."""
        name, policy, seed = case.split()
        changes = {"autoscaler.policy": policy, "seed": int(seed), "duration_s": round(self.duration) or None}
        images = {"tailpack": self.image, "tailpack-report": self.report_image}
        there = Cluster(context=self.context, overlay=Path(self.overlay), images=images)
        folder = Path(self.out, f"{case.replace(' ', '-')}-{time.strftime('%Y%m%d-%H%M%S')}")
        run_there(load_scenario(name, changes), there, folder, lambda said: tools.announce(said=said))
        result = Result.load(folder)
        return {one: getattr(result, one) for one in FIGURES} | {
            "lateness_p99_s": result.lateness.p99_s,
            "start_max_s": result.starts.max_s if result.starts else None,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A cluster, and what is applied there."""

    context: str = ""
    """Name in the kubeconfig; empty: its current one."""
    overlay: Path = MANIFESTS / "overlays" / "kind"
    images: Mapping[str, str] = field(default_factory=dict)
    """Image in the manifests → its NAME:TAG in the cluster."""

    def kubectl(self, *words: str, namespace: str = "", given: str | None = None, may_fail: bool = False) -> bytes:
        """Return the output of kubectl. Raises BenchError."""
        where = (("--context", self.context), ("--namespace", namespace))
        command = ["kubectl", *(word for pair in where if pair[1] for word in pair), *words]
        try:
            stdin = given and given.encode()
            done = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=ASK_S)
        except FileNotFoundError:
            raise BenchError("kubectl is not installed: see https://kubernetes.io/docs/tasks/tools") from None
        except subprocess.TimeoutExpired as silent:
            raise BenchError(f"the cluster does not answer within {ASK_S:.0f} s: kubectl {words[0]}") from silent
        if done.returncode and not may_fail:
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            if "localhost:8080" in said:  # kubectl's own default
                raise BenchError(f"no kubeconfig leads to a cluster ({kubeconfig()}): set KUBECONFIG")
            raise BenchError(f"kubectl {words[0]}: {said or 'failed'} (kubeconfig {kubeconfig()})")
        return bytes(done.stdout)


class Namespace:
    """A namespace and what was applied there."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name, self.kubectl = cluster, name, partial(cluster.kubectl, namespace=name)

    def get(self, *words: str) -> Any:
        """Return the JSON of `kubectl get`; the items of a list."""
        found = json.loads(self.kubectl("get", *words, "-o", "json"))
        return found.get("items", found)

    def pods(self, app: str = "") -> list[dict[str, Any]]:
        """Return the pods, of one app where it is named, that are not about to end."""
        selected = ["-l", f"app={app}"] if app else []
        return [one for one in self.get("pods", *selected) if "deletionTimestamp" not in one["metadata"]]

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
            merged = {"literals": [f"{key}={value}" for key, value in (settings or {}).items()]}
            here = {
                "resources": [os.path.relpath(self.cluster.overlay.resolve(), folder)],
                "components": [os.path.relpath(MANIFESTS / "components" / each, folder) for each in components],
                "namespace": self.name,
                "sortOptions": {"order": "legacy"},  # the namespace first
                "images": [_image(name, there) for name, there in self.cluster.images.items()],
                "replicas": [{"name": each, "count": count} for each, count in (replicas or {}).items()],
                "patches": list(patches),
                "configMapGenerator": [{"name": "settings", "behavior": "merge"} | merged] if settings else [],
            }
            (folder / "kustomization.yaml").write_text(json.dumps(here), encoding="utf-8")  # JSON is YAML
            self.cluster.kubectl("apply", "--kustomize", made)

    def obstacles(self) -> dict[str, str]:
        """Return object → what keeps it from getting ready: an image, a node, a quota, or how a container ended."""
        events = self.get("events", "--field-selector", "reason=FailedCreate")
        found = {event["involvedObject"]["name"]: event["message"] for event in events}
        for pod in map(pod_of, self.pods()):
            if pod.exit and not pod.exit.clean and not pod.ready:
                found[pod.name] = f"pod {pod.name} ended with {pod.exit.how}: {pod.last_words}"
            elif pod.waits.startswith(STUCK_REASONS):
                found[pod.name] = f"pod {pod.name}: {pod.waits}"
        return found

    def until_ready(self, replicas: int, announce: Callable[[str], None]) -> None:
        """Wait for Jobs and brokers, then services, `replicas` of Payment. Raises BenchError with the obstacles."""
        began_s = since_s = monotonic_s()
        before, seen = list[str](), dict[str, str]()
        while awaited := self._missing(replicas):
            if awaited != before:
                before, seen = awaited, {}
            theirs = tuple(f"{one}-" for one in awaited)
            seen |= {name: why for name, why in self.obstacles().items() if f"{name}-".startswith(theirs)}
            if not seen:
                since_s = monotonic_s()
            said = "; ".join([", ".join(awaited), *list(seen.values())[:3]])
            announce(f"waiting for {said}")
            if monotonic_s() > min(since_s + STUCK_S, began_s + READY_S):
                raise BenchError(f"not ready after {monotonic_s() - began_s:.0f} s: {said}")
            time.sleep(POLL_S)

    def _missing(self, replicas: int) -> list[str]:
        """Return Jobs and brokers that are not done or ready; then services, which may crash until all those are."""
        jobs = [one for one in self.get("jobs") if not (one["spec"].get("suspend") or one["status"].get("succeeded"))]
        first = jobs + [one for one in self.get("statefulsets") if _unready(one, replicas)]
        found = first or [one for one in self.get("deployments") if _unready(one, replicas)]
        return [one["metadata"]["name"] for one in found]


def _unready(workload: dict[str, Any], payments: int) -> bool:
    wanted = max(workload["spec"].get("replicas", 1), payments if workload["metadata"]["name"] == "payment" else 0)
    return bool(workload["status"].get("readyReplicas", 0) < wanted)


@contextmanager
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """Yield a fresh one; it is deleted with all that is in it. Raises BenchError, also where no cluster answers."""
    cluster.kubectl("version", "--request-timeout=10s")  # an error here comes before anything is made
    made = Namespace(cluster, f"tailpack-{uuid.uuid4().hex[:8]}")
    try:
        yield made
    finally:
        cluster.kubectl("delete", "namespace", made.name, "--wait=false", "--ignore-not-found", may_fail=True)


def run_there(scenario: Scenario, cluster: Cluster, folder: Path, announce: Callable[[str], None]) -> None:
    """Run a delivered scenario there, and put the files of the run into `folder`. Raises BenchError."""
    if scenario.name not in scenario_names():
        raise BenchError(f"{scenario.name}: pods have only the delivered scenarios; see tailpack list scenarios")
    if scenario.payment.runtime:
        raise BenchError(f"{scenario.name}: on a cluster replicas are ours, not {scenario.payment.runtime}'s")
    with namespace(cluster) as place:
        announce("applying the overlay")
        place.apply(
            replicas={} if scenario.topology is Topology.PIPELINE else dict.fromkeys(FAUST, 0),
            settings={f"TAILPACK_{key}": value for key, value in _settings(scenario, place.name).items()},
            components=("run",),
        )
        place.until_ready(scenario.autoscaler.initial_replicas, announce)
        place.kubectl("patch", "job", "run", "--patch", '{"spec": {"suspend": false}}')
        pod = _until_reported(place, scenario.duration_s + OVER_S, announce)
        announce("fetching the files")
        command = ("exec", pod, "--container", "results", "--", "tar", "-C", f"/out/{place.name}", "-cf", "-", ".")
        files = place.kubectl(*command)
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(files)) as packed:
        packed.extractall(folder, filter="data")


def _image(name: str, there: str) -> dict[str, str]:
    new, colon, tag = there.rpartition(":")
    tagged = colon and "/" not in tag
    return {"name": name, "newName": new, "newTag": tag} if tagged else {"name": name, "newName": there}


def _settings(scenario: Scenario, namespace: str) -> dict[str, str]:
    """Return what all pods are configured with. The brokers may have topics of others, and of earlier runs."""
    return scenario.autoscaler_settings() | {
        "NAMESPACE": namespace,
        "PIPELINE_PARTITIONS": str(scenario.pipeline_partitions),
        "SCENARIO": scenario.name,
        "LOAD_OPTIONS": f"--seed {scenario.seed} --duration {scenario.duration_s:.0f}s",
    }


def _until_reported(place: Namespace, within_s: float, announce: Callable[[str], None]) -> str:
    """Wait until the files of the run can be fetched; return the pod that has them. Raises BenchError."""
    began_s = monotonic_s()

    def pod() -> str:
        announce(f"load and report, {monotonic_s() - began_s:.0f} s")
        if place.get("job", "run")["status"].get("failed"):
            log = place.kubectl("logs", "job/run", "--all-containers", "--tail", "1", may_fail=True).decode()
            raise BenchError(f"load or report failed: {last_line(log)}")
        for one in place.pods("run"):
            if any("running" in container["state"] for container in one["status"].get("containerStatuses", ())):
                return str(one["metadata"]["name"])
        return ""

    try:
        return until(pod, within_s, "the run has a report", POLL_S)
    except WaitTimeoutError as late:
        raise BenchError("; ".join([str(late), *place.obstacles().values()])) from late
