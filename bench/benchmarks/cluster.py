"""Run scenarios on Kubernetes. Each run has its own namespace, with a Job that sends the load and makes the report."""

import io
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Option

from autoscaler.live.launchers.pods import last_line
from autoscaler.policies.registry import policy_factory
from bench import BenchError
from bench.benchmark import Benchmark, Row, Tools, time_option
from bench.cluster import KIND, POLL_INTERVAL_S, Cluster, Namespace, namespace
from bench.scenario import Scenario, load_scenario, scenario_names
from contracts.clock import monotonic_s
from contracts.waiting import WaitTimeoutError, until
from loadgen.spec import Topology
from report.result import Result

EXTRA_RUN_S: Final = 900.0
"""Maximum time for start, drain and report, in addition to the duration of the scenario."""
FAUST_SERVICES: Final = ("order", "shipment", "notification")
FIGURES: Final = (
    *("scenario", "policy", "seed", "events", "in_sla", "p50_s", "p99_s", "p999_s", "max_s", "replica_minutes"),
    *("scale_ups", "scale_downs", "reassignments", "moved_partitions", "lost", "valid"),
)
"""Fields of the run's result that are copied into the row."""


@dataclass(kw_only=True)
class ClusterRuns(Benchmark):
    """Run scenarios on a Kubernetes cluster, each in its own namespace, and write the files to --out."""

    scenarios: Annotated[list[str], Argument(help="Names of scenarios, for example w1 taxi.")]
    policy: Annotated[list[str], Option(help="Policy to run. Repeatable.")] = field(
        default_factory=lambda: ["tail-aware"]
    )
    seeds: Annotated[int, Option(help="Runs per scenario and policy, with seeds 1, 2, …", min=1)] = 1
    duration: Annotated[
        float, time_option("Send only the first part of the load, of this length; 0: the whole load.")
    ] = 0.0
    context: Annotated[str, Option(help="Context in the kubeconfig; default: its current one.")] = ""
    overlay: Annotated[str, Option(help="Kustomize folder that is applied; default: infra/k8s/overlays/kind.")] = ""
    image: Annotated[str, Option(help="Image of services, autoscaler and load.")] = "tailpack:0.1.0"
    report_image: Annotated[str, Option(help="Image of the report.")] = "tailpack-report:0.1.0"
    out: Annotated[str, Option(help="Folder in which each run gets a folder.")] = "out"

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
