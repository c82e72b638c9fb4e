"""Replicas of tests/support/reporting_replica.py as pods of a Deployment, for tests of the launcher."""

import json
import uuid
from pathlib import Path

import yaml
from pods import kubectl

from autoscaler.live.launchers.api import Api
from autoscaler.live.launchers.kubernetes import KubernetesLauncher
from autoscaler.live.launchers.pods import GATE
from autoscaler.live.settings import KubernetesSettings

REPLICA_CODE = (Path(__file__).parent / "reporting_replica.py").read_text(encoding="utf-8")
DEPLOYMENT = "payment"


class Pods:
    """Replicas as pods of a Deployment in a namespace for the test."""

    killed = "its pod was deleted"
    keeps_the_dead = False

    def __init__(self, image: str) -> None:
        self.namespace = f"launch-{uuid.uuid4().hex[:8]}"
        self.image = image
        self.by_plan = False
        self.command, self.memory = ["python", "-c", REPLICA_CODE], "64Mi"
        self.gates = [{"name": GATE}]
        self.node: dict[str, str] = {}
        """Required labels of the node."""
        self._launchers: list[KubernetesLauncher] = []
        self._environ: dict[str, str] | None = None
        kubectl("create", "namespace", self.namespace)

    def launcher(self, **environ: str) -> KubernetesLauncher:
        if self._environ is None:
            self.apply(environ)
        api = Api(KubernetesSettings(kubernetes_namespace=self.namespace, kubernetes_deployment=DEPLOYMENT))
        self._launchers.append(KubernetesLauncher(api, by_plan=self.by_plan))
        return self._launchers[-1]

    def apply(self, environ: dict[str, str]) -> None:
        self._environ = environ
        variables = [{"name": name, "value": value} for name, value in environ.items()]
        named = {"fieldRef": {"fieldPath": "metadata.annotations['tailpack/replica']"}}
        labels = {"app": DEPLOYMENT, "of": self.namespace}
        container = {
            "name": "replica",
            "image": self.image,
            "imagePullPolicy": "Never",
            "command": self.command,
            "resources": {"limits": {"memory": self.memory}},
            "env": [{"name": "TAILPACK_REPLICA", "valueFrom": named}, *variables],
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }
        pod = {
            "schedulingGates": self.gates,
            "terminationGracePeriodSeconds": 10,
            "automountServiceAccountToken": False,
            "containers": [container],
            "nodeSelector": self.node,
        }
        self.kubectl(
            "apply",
            "-f",
            "-",
            given=yaml.safe_dump(
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": DEPLOYMENT},
                    "spec": {
                        "replicas": 0,
                        "selector": {"matchLabels": labels},
                        "template": {"metadata": {"labels": labels}, "spec": pod},
                    },
                }
            ),
        )

    def kubectl(self, *words: str, given: str | None = None) -> str:
        return kubectl("--namespace", self.namespace, *words, given=given)

    def pods(self) -> list[dict]:
        return json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]

    def named(self, name: str) -> list[dict]:
        notes = [(pod, pod["metadata"].get("annotations", {})) for pod in self.pods()]
        return [pod for pod, note in notes if note.get("tailpack/replica") == name]

    def log_of(self, name: str) -> str:
        running = [pod for pod in self.named(name) if pod["status"]["phase"] == "Running"]
        alive = [pod for pod in running if "deletionTimestamp" not in pod["metadata"]]
        return self.kubectl("logs", alive[0]["metadata"]["name"]) if alive else ""

    def close(self) -> None:
        for launcher in self._launchers:
            launcher.close()
        self.kubectl("delete", "deployments,pods", "--all", "--grace-period=1", "--wait=false")
        kubectl("delete", "namespace", self.namespace, "--wait=false")
