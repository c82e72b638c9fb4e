"""From a plan until its pods are ready: through KEDA and the HPA, and by a patch of the scale subresource."""

import os
import socket
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from kubernetes import client, config
from kubernetes.client import ApiException

from autoscaler.live.plan_log import PlanLog
from autoscaler.live.settings import kubeconfig
from autoscaler.policies.keda_hpa import KedaHpaSettings
from bench import BenchError
from contracts.children import last_log_line, python_module, start, wait_for_end
from contracts.clock import steady_s
from contracts.connection import Connection
from contracts.topics import Group, qualified
from contracts.validation import as_environment

TARGETS: Final = 6
"""Deployments, each under a ScaledObject and so an HPA of its own: each HPA looks in its own time."""
DIRECT: Final = 4
"""Scale patches."""
REPLICAS: Final = 3
POLL_S: Final = 0.05
DEADLINE_S: Final = 40.0
GROUP: Final = "keda.sh"
VERSION: Final = "v1alpha1"
IMAGES: Final = ("registry.k8s.io/pause", "tailpack.local/pause")
"""Pods that do nothing are enough; one that the node has already is preferred."""


class KedaReaction(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds until all replicas that were asked for are ready."""

    n: int
    reaction_p50_s: float
    reaction_max_s: float
    direct_n: int
    direct_reaction_p50_s: float
    simulated_reaction_p50_s: float
    """What the simulator's keda-hpa has for the same: half of the HPA's period, then a direct reaction."""


def connect(context: str | None) -> client.ApiClient:
    """Return the way to the cluster of a kubeconfig's context; None: its current one. Raises BenchError."""
    try:
        return config.new_client_from_config(kubeconfig(), context)
    except config.ConfigException as wrong:
        raise BenchError(
            f"{kubeconfig()} cannot be used: {wrong}; set KUBECONFIG, or name a context that it has"
        ) from wrong


def measure(
    api: client.ApiClient, connection: Connection, *, address: str = "", announce: Callable[[str], None]
) -> KedaReaction:
    """Measure in a namespace of its own, which is gone afterwards.

    connection: a Kafka whose plan topic nobody else uses. address: of this machine, as pods reach it; empty: the one
    that this machine has in the network of the nodes. Raises BenchError.
    """
    with _refusals(), tempfile.TemporaryDirectory() as folder, _namespace(api) as namespace:
        image, own = _image(api), address or _own_address(api)
        log = PlanLog(connection, qualified(connection.namespace, Group.PAYMENT))
        log.write(("pod-0",), None, "one replica")
        with _scaler(connection, own, Path(folder)) as port:
            announce("one HPA after the other is made")
            scaled = [f"scaled-{number}" for number in range(TARGETS)]
            _deploy(api, namespace, "direct", image)
            direct: list[float] = []
            for number, name in enumerate(scaled):
                began_s = steady_s()
                _deploy(api, namespace, name, image)
                _scaled_object(api, namespace, name, f"{own}:{port}")
                direct += _direct(api, namespace, DIRECT * (number + 1) // TARGETS - len(direct))
                time.sleep(max(0.0, KedaHpaSettings.sync_s / TARGETS - (steady_s() - began_s)))
            _wait_until_followed(api, namespace, scaled)
            announce(f"a plan wants {REPLICAS} replicas")
            log.write(("pod-0",), None, "more replicas", wanted=REPLICAS)
            found = _ready_after_s(api, namespace, scaled, REPLICAS)
    typical_s = statistics.median(direct)
    return KedaReaction(
        n=len(found),
        reaction_p50_s=round(statistics.median(found.values()), 2),
        reaction_max_s=round(max(found.values()), 2),
        direct_n=len(direct),
        direct_reaction_p50_s=round(typical_s, 2),
        simulated_reaction_p50_s=round(KedaHpaSettings.sync_s / 2 + typical_s, 2),
    )


def scaled_object(name: str, address: str) -> dict[str, Any]:
    """Return the ScaledObject that lets KEDA follow the plan, as docs/keda.md has it."""
    at_once = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 1000, "periodSeconds": 15}]}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "ScaledObject",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"name": name},
            "minReplicaCount": 1,
            "maxReplicaCount": 100,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": at_once, "scaleDown": at_once}}},
            "triggers": [{"type": "external-push", "metadata": {"scalerAddress": address}}],
        },
    }


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn what the API server refuses, or that it is not there, into one sentence."""
    try:
        yield
    except ApiException as refused:
        raise BenchError(refusal(refused)) from refused
    except OSError as away:  # urllib3's errors are none, but what it ends with is
        raise BenchError(f"the cluster cannot be reached: {away}") from away


def refusal(refused: ApiException) -> str:
    """Return what the API server said, and what to do about it."""
    try:
        said = str(msgspec.json.decode(refused.body or b"{}").get("message", refused.reason))
    except (msgspec.DecodeError, AttributeError):
        said = str(refused.reason)
    advice = {
        401: "; log in again, or correct the kubeconfig",
        403: "; give the Role that verb",
        404: "; make it first",
    }
    return f"the cluster refuses ({refused.status}): {said}{advice.get(refused.status, '')}"


@contextmanager
def _namespace(api: client.ApiClient) -> Iterator[str]:
    """Make a namespace in a cluster that has KEDA, and remove it."""
    core, name = client.CoreV1Api(api), f"tailpack-bench-{uuid.uuid4().hex[:8]}"
    try:
        client.CustomObjectsApi(api).get_api_resources(GROUP, VERSION)
    except ApiException as refused:
        if refused.status != 404:
            raise
        said = "KEDA is not installed in this cluster: no CRD scaledobjects.keda.sh; see https://keda.sh/docs/latest/deploy"
        raise BenchError(said) from refused
    core.create_namespace({"metadata": {"name": name}})
    try:
        yield name
    finally:
        core.delete_namespace(name, grace_period_seconds=0)


def _image(api: client.ApiClient) -> str:
    nodes = client.CoreV1Api(api).list_node().items
    there = [name for node in nodes for image in node.status.images or [] for name in image.names or []]
    named = (name for name in there if name.partition(":")[0] in IMAGES and "@" not in name)
    return next(named, f"{IMAGES[0]}:3.10")


def _own_address(api: client.ApiClient) -> str:
    addresses = client.CoreV1Api(api).list_node().items[0].status.addresses
    node = next(one.address for one in addresses if one.type == "InternalIP")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # sends nothing: it only picks the way
        probe.connect((node, 9))
        return str(probe.getsockname()[0])


@contextmanager
def _scaler(connection: Connection, host: str, folder: Path) -> Iterator[int]:
    """Run the external scaler on this machine."""
    with socket.create_server((host, 0)) as free:
        port = int(free.getsockname()[1])
    log = folder / "scaler.log"
    own = {"TAILPACK_GRPC_HOST": host, "TAILPACK_GRPC_PORT": str(port)}
    environ = os.environ | as_environment(connection) | own
    process = start(python_module("autoscaler.keda"), environ, log)
    try:
        _wait_for(lambda: "KEDA is answered" in log.read_text() or process.poll() is not None, "the external scaler")
        if process.poll() is not None:
            raise BenchError(f"the external scaler ended: {last_log_line(log)}")
        yield port
    finally:
        process.terminate()
        wait_for_end(process, 10)


def _deploy(api: client.ApiClient, namespace: str, name: str, image: str) -> None:
    labels = {"app": name}
    pod = {
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "pause", "image": image, "imagePullPolicy": "IfNotPresent"}],
    }
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    client.AppsV1Api(api).create_namespaced_deployment(namespace, {"metadata": {"name": name}, "spec": spec})


def _scaled_object(api: client.ApiClient, namespace: str, name: str, address: str) -> None:
    made = scaled_object(name, address)
    client.CustomObjectsApi(api).create_namespaced_custom_object(GROUP, VERSION, namespace, "scaledobjects", made)


def _direct(api: client.ApiClient, namespace: str, times: int) -> list[float]:
    """Scale one Deployment by patches, up and down in turn; return the seconds of those up."""
    found = []
    for _ in range(times):
        for replicas in (REPLICAS, 1):
            patch = {"spec": {"replicas": replicas}}
            client.AppsV1Api(api).patch_namespaced_deployment_scale("direct", namespace, patch)
            took = _ready_after_s(api, namespace, ["direct"], replicas)["direct"]
            found += [took] if replicas == REPLICAS else []
    return found


def _wait_until_followed(api: client.ApiClient, namespace: str, names: Collection[str]) -> None:
    """Wait until each HPA has read the metric once."""
    hpas = client.AutoscalingV2Api(api)

    def followed() -> bool:
        there = hpas.list_namespaced_horizontal_pod_autoscaler(namespace).items
        reading = {one.spec.scale_target_ref.name for one in there if one.status.current_metrics}
        return reading >= set(names)

    _wait_for(followed, "KEDA and the HPAs: can KEDA reach the scaler on this machine? --address says where")


def _ready_after_s(api: client.ApiClient, namespace: str, names: Collection[str], replicas: int) -> Mapping[str, float]:
    """Return, for each Deployment, after how many seconds from now it has so many pods, all ready."""
    began_s, found = steady_s(), dict[str, float]()

    def there() -> bool:
        for one in client.AppsV1Api(api).list_namespaced_deployment(namespace).items:
            status = one.status
            if (status.replicas, status.ready_replicas) == (replicas, replicas) and one.metadata.name in names:
                found.setdefault(one.metadata.name, steady_s() - began_s)
        return found.keys() >= set(names)

    _wait_for(there, f"{replicas} ready replicas of {', '.join(names)}")
    return found


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    give_up_s = steady_s() + DEADLINE_S
    while not condition():
        if steady_s() > give_up_s:
            raise BenchError(f"not within {DEADLINE_S:.0f} s: {what}")
        time.sleep(POLL_S)
