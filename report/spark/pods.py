"""Executors as pods like the one this process runs in: its image, its volumes, its security; and why none comes."""

import atexit
import json
import os
import socket
import ssl
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyspark

from report import ReportError

KUBERNETES: Final = "k8s://"
ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes puts the token of a pod that may ask the API server."""
ASK_S: Final = 10.0
PLACED: Final = ("securityContext", "imagePullSecrets", "nodeSelector", "affinity", "tolerations", "priorityClassName")
"""Of a pod: who it may be, and where it may run."""
CONTAINED: Final = ("env", "envFrom", "securityContext")
EXECUTOR: Final = r"""
cd "${{SPARK_LOCAL_DIRS%%,*}}"
env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=\(.*\)/"\1"/p' >java.options
exec java @java.options -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" -cp '{jars}/*' \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend --driver-url "$SPARK_DRIVER_URL" \
  --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" \
  --hostname "$SPARK_EXECUTOR_POD_IP" --podName "$SPARK_EXECUTOR_POD_NAME" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID"
"""
"""What the entry point of Spark's own image does; ours has none. Only Spark's scratch space is sure to be writable."""


def like_this_pod(master: str, folder: Path) -> dict[str, str]:
    """Return Spark's settings for executors on `master` that are like this process's pod; none outside a pod.

    folder: which executors read and write. Raises ReportError where it is in no volume that they could mount, and where
    the API server does not answer or refuses.
    """
    if not (ACCOUNT / "token").exists():
        return {}
    namespace, name = (ACCOUNT / "namespace").read_text(encoding="ascii").strip(), socket.gethostname()
    pod = _asked(master, f"namespaces/{namespace}/pods/{name}")
    container = pod["spec"]["containers"][0]
    if not _shared(pod["spec"], container, folder.resolve()):
        way = "put it into a volume that other pods can mount, as a claim that is ReadWriteMany"
        raise ReportError(f"{folder} lies in this pod alone, so executors would not see it; {way}")
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False, encoding="utf-8") as template:
        json.dump(_template(pod, container), template)
    atexit.register(Path(template.name).unlink, missing_ok=True)
    return {
        "spark.driver.host": pod["status"]["podIP"],
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.driver.pod.name": name,  # owns the executors: they go when it goes
        "spark.kubernetes.container.image": container["image"],
        "spark.kubernetes.container.image.pullPolicy": container["imagePullPolicy"],
        "spark.kubernetes.executor.podTemplateFile": template.name,
        "spark.kubernetes.executor.disableConfigMap": "true",  # it would hold this pod's spark-defaults.conf
        "spark.kubernetes.driver.service.deleteOnTermination": "false",  # there is none
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    }


def why_none_comes(master: str, application: str) -> str:
    """Return what keeps the executors of an application from running, as far as the API server tells it."""
    if not (ACCOUNT / "token").exists():
        return ""
    namespace = (ACCOUNT / "namespace").read_text(encoding="ascii").strip()
    try:
        pods = _asked(master, f"namespaces/{namespace}/pods?labelSelector=spark-app-selector%3D{application}")["items"]
    except ReportError as refused:
        return str(refused)
    return next((said for pod in pods for said in _waits(pod["status"])), "")


def _waits(status: Mapping[str, Any]) -> Iterator[str]:
    for one in status.get("containerStatuses", []):
        for state in (one["state"].get("waiting"), one["state"].get("terminated")):
            if state:
                yield ": ".join(filter(None, (state.get("reason"), state.get("message"))))
    for one in status.get("conditions", []):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            yield one.get("message", one["reason"])


def _shared(spec: Mapping[str, Any], container: Mapping[str, Any], folder: Path) -> bool:
    mounts = [one for one in container["volumeMounts"] if folder.is_relative_to(one["mountPath"])]
    deepest = max(mounts, key=lambda one: len(Path(one["mountPath"]).parts), default={"name": None})["name"]
    return any(one["name"] == deepest and "emptyDir" not in one for one in spec["volumes"])


def _template(pod: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod that Spark completes: all of this one but its name, its command and its account."""
    spec, labels = pod["spec"], pod["metadata"].get("labels", {})
    mounts = [one for one in container["volumeMounts"] if one["mountPath"] != str(ACCOUNT)]
    mounted = {one["name"] for one in mounts}
    command = EXECUTOR.format(jars=Path(pyspark.__file__).parent / "jars")
    executor = {"name": "executor", "command": ["sh", "-ec", command], "volumeMounts": mounts}
    return {
        "metadata": {"labels": {k: v for k, v in labels.items() if k.startswith("app.kubernetes.io/")}},
        "spec": {
            **{key: spec[key] for key in PLACED if key in spec},
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "volumes": [one for one in spec["volumes"] if one["name"] in mounted],
            "containers": [executor | {key: container[key] for key in CONTAINED if key in container}],
        },
    }


def _asked(master: str, what: str) -> dict[str, Any]:
    where = master.removeprefix(KUBERNETES)
    url = f"{where if '://' in where else f'https://{where}'}/api/v1/{what}"
    token = (ACCOUNT / "token").read_text(encoding="ascii")
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310  --master says where
    trusted = ssl.create_default_context(cafile=os.fspath(ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(asked, timeout=ASK_S, context=trusted) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return found
    except urllib.error.HTTPError as refused:
        said = json.load(refused).get("message", "") if refused.code == 403 else refused.reason
        way = "give the pod's service account the Role of infra/k8s/overlays/report"
        raise ReportError(f"--master {master}: Kubernetes refuses ({said}); {way}") from refused
    except OSError as silent:
        raise ReportError(f"--master {master}: the API server does not answer ({silent})") from silent
