"""Replicas of an experiment as pods: a namespace with a broker of its own, and what a crash is there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from autoscaler.live.launcher import Instance, LauncherError
from autoscaler.live.launchers.api import Api
from autoscaler.live.launchers.kubernetes import KubernetesLauncher
from bench import BenchError
from bench.cluster import FAUST, Cluster, Namespace, namespace, until_ready
from bench.handover.children import Children
from bench.handover.experiment import Start, settings_of
from bench.handover.setup import Setup
from contracts.connection import Connection

PAYMENT: Final = "payment"
CRASH: Final = "date +%s%6N; kill -9 -1"
"""Says when, by the clock of the pod, and ends every process of its user but the shell that says so."""
NO_TOPICS: Final = {
    "target": {"kind": "Job", "name": "topics"},
    "patch": '[{"op": "add", "path": "/spec/suspend", "value": true}]',
}


@contextmanager
def pods(cluster: Cluster, setup: Setup, announce: Callable[[str], None]) -> Iterator[tuple[Connection, Start]]:
    """Yield the way to a broker in a namespace of its own, without topics, and what starts replicas there.

    This machine must reach pods by their addresses, as a node does. Raises BenchError.
    """
    try:
        with namespace(cluster) as place:
            place.apply(
                replicas=dict.fromkeys((*FAUST, "autoscaler", PAYMENT), 0),
                settings=settings_of(setup) | {"TAILPACK_NAMESPACE": place.name},
                patches=[NO_TOPICS],
            )
            until_ready(place, 0, announce)
            address = place.pods("kafka")[0]["status"]["podIP"]
            api = Api(namespace=place.name, deployment=PAYMENT, context=cluster.context)
            connection = Connection(bootstrap_servers=f"{address}:9092", namespace=place.name)
            yield connection, lambda _: Children(KubernetesLauncher(api), lambda pod: _crashed(place, pod))
    except LauncherError as wrong:
        raise BenchError(str(wrong)) from wrong


def _crashed(place: Namespace, pod: Instance) -> int:
    """SIGKILL all that runs in a pod; return when, µs since the epoch."""
    said = place.kubectl("exec", pod.where.rpartition(" ")[2], "--", "sh", "-c", CRASH, may_fail=True).decode()
    if not said.strip().isdigit():
        raise BenchError(f"{pod.where} could not be killed: {said.strip() or 'kubectl exec says nothing'}")
    return int(said)
