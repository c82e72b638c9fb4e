"""Client of the API server for a Deployment, its pods and a Lease. Each call has a deadline."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kubernetes import client, config
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from autoscaler.live.launcher import LauncherError
from autoscaler.live.launchers.pods import GATE, Pod, Raw
from autoscaler.live.settings import KubernetesSettings, kubeconfig

CONNECT_TIMEOUT_S: Final = 1.0
READ_TIMEOUT_S: Final = 3.0
WATCH_S: Final = 8.0
"""Longest duration of a watch. A frozen server sends no end of file, so only the renewal detects it."""
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
IN_CLUSTER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Api:
    """One Deployment in one namespace."""

    def __init__(self, settings: KubernetesSettings) -> None:
        """Use the account of this pod, else a kubeconfig. Raises LauncherError."""
        configuration, context = client.Configuration(), settings.kubernetes_context
        try:
            if not context and IN_CLUSTER.exists():
                config.load_incluster_config(configuration)
                own_namespace = IN_CLUSTER.read_text(encoding="utf-8").strip()
            else:
                config.load_kube_config(kubeconfig(), context or None, configuration)
                contexts, active = config.list_kube_config_contexts(kubeconfig())
                chosen = next((candidate for candidate in contexts if candidate["name"] == context), active)
                own_namespace = str(chosen["context"].get("namespace", "default"))
        except config.ConfigException as error:
            remedy = "set KUBECONFIG or TAILPACK_KUBERNETES_CONTEXT"
            raise LauncherError(f"cannot load {kubeconfig()}: {error}; {remedy}") from error
        configuration.retries = False  # the launcher retries
        self.namespace = settings.kubernetes_namespace or own_namespace
        self.deployment = settings.kubernetes_deployment
        self._host = configuration.host
        api = client.ApiClient(configuration)
        self._core, self._apps = client.CoreV1Api(api), client.AppsV1Api(api)
        self._leases = client.CoordinationV1Api(api)
        self._selector = ""

    def read_deployment(self) -> Raw:
        """Return the Deployment. Raises LauncherError if it does not exist."""
        found = self._request_json(self._apps.read_namespaced_deployment, self.deployment)
        labels: Mapping[str, str] = found["spec"]["selector"]["matchLabels"]
        self._selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return found

    def list_pods(self) -> tuple[list[Raw], str]:
        """Return all pods, and the version from which a watch must start."""
        found = self._request_json(self._core.list_namespaced_pod, label_selector=self._selector)
        return found["items"], found["metadata"]["resourceVersion"]

    def watch_pods(self, version: str) -> Iterator[tuple[str, Raw]]:
        """Yield (kind of change, pod) since `version`, until the server ends the watch after `WATCH_S`."""
        answer = self._request(
            self._core.list_namespaced_pod,
            label_selector=self._selector,
            resource_version=version,
            watch=True,
            timeout_seconds=int(WATCH_S),
            _request_timeout=(CONNECT_TIMEOUT_S, WATCH_S + READ_TIMEOUT_S),
        )
        try:
            rest = b""
            for chunk in answer.stream(amt=None, decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise LauncherError(f"the watch ended: {event['object'].get('message')}", 410)
                    yield event["type"], event["object"]
        except HTTPError as error:
            raise self._no_answer_error() from error
        finally:
            answer.release_conn()

    def annotate(self, pod: Pod, annotations: Mapping[str, str], *, open_gate: bool = False) -> Raw:
        """Write annotations and return the pod. Raises LauncherError 409 if the pod has changed or is deleted."""
        body: Raw = {"metadata": {"annotations": dict(annotations), "resourceVersion": pod.version}}
        if open_gate:
            body["spec"] = {"schedulingGates": None}
        try:
            return self._request_json(self._core.patch_namespaced_pod, pod.name, body=body, _content_type=MERGE)
        except LauncherError as error:
            error.status = 409 if error.status == 404 else error.status
            raise

    def delete(self, pod: Pod, *, at_once: bool = True) -> None:
        """Delete exactly this pod, at once or with its grace period. Does nothing if it is already deleted."""
        options: Raw = {"preconditions": {"uid": pod.uid}} | ({"gracePeriodSeconds": 0} if at_once else {})
        try:
            self._request_json(self._core.delete_namespaced_pod, pod.name, body=options)
        except LauncherError as error:
            if error.status not in (404, 409):
                raise

    def scale(self, replicas: int, version: str) -> None:
        """Set the pod count of the Deployment. Raises LauncherError 409 if the Deployment has changed."""
        body = {"metadata": {"resourceVersion": version}, "spec": {"replicas": replicas}}
        patch = self._apps.patch_namespaced_deployment_scale
        self._request_json(patch, self.deployment, body=body, _content_type=MERGE)

    def lease(self, name: str, body: Raw | list[Raw] | None = None) -> Raw:
        """Return the Lease, changed by `body` if given (list: JSON patch; dict: merge). Raises LauncherError."""
        if body is None:
            return self._request_json(self._leases.read_namespaced_lease, name)
        kind = MERGE if isinstance(body, dict) else JSON_PATCH
        return self._request_json(self._leases.patch_namespaced_lease, name, body=body, _content_type=kind)

    def _request_json(self, call: Callable[..., Any], *words: str, **more: Any) -> Raw:
        answer = self._request(call, *words, **more)
        try:
            return json.loads(answer.read())  # type: ignore[no-any-return]
        except (HTTPError, ValueError) as error:
            raise self._no_answer_error() from error
        finally:
            answer.release_conn()

    def _request(self, call: Callable[..., Any], *words: str, **more: Any) -> Any:
        """Return the answer without reading its body. Raises LauncherError."""
        more = {"_request_timeout": (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)} | more
        try:
            answer: Any = call(*words, self.namespace, _preload_content=False, **more)
        except ApiException as refused:
            raise self._refusal_error(refused.status, refused.body, refused.headers) from refused
        except HTTPError as error:
            raise self._no_answer_error() from error
        if not 200 <= answer.status < 300:
            raise self._refusal_error(answer.status, answer.read(), answer.headers)
        return answer

    def _no_answer_error(self) -> LauncherError:
        return LauncherError(
            f"no answer within {READ_TIMEOUT_S:g} s from API server {self._host}; replicas keep running"
        )

    def _refusal_error(self, status: int | None, body: Any, headers: Any) -> LauncherError:
        try:
            message = json.loads(body)["message"]
        except (TypeError, ValueError, KeyError):
            message = str(body)[:200]
        advice = {
            401: "; use a token that is valid for this server",
            403: "; add this verb to the autoscaler's Role",
            404: f"; apply infra/k8s to namespace {self.namespace}, or correct TAILPACK_KUBERNETES_NAMESPACE, "
            "…_DEPLOYMENT or …_LEASE",
        }
        wait = str((headers or {}).get("Retry-After", ""))
        retry_after_s = float(wait) if wait.isdigit() else 0.0
        sentence = f"Kubernetes refuses ({status}): {message}{advice.get(status or 0, '')}"
        return LauncherError(sentence, status or 0, retry_after_s)


def why_ungated(deployment: Raw) -> str:
    """Return why new pods of this Deployment would not wait for names; empty: they wait."""
    if {"name": GATE} in deployment["spec"]["template"]["spec"].get("schedulingGates", ()):
        return ""
    remedy = f"add schedulingGates: [{{name: {GATE}}}] to its template"
    return f"pods of Deployment {deployment['metadata']['name']} would start without a name; {remedy}"
