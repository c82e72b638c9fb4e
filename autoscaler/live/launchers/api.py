"""A Deployment, its pods and a Lease at the API server. Each call has a deadline, each failure is one sentence."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kubernetes import client, config
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from autoscaler.live.launcher import LauncherError
from autoscaler.live.launchers.pods import Pod, Raw
from autoscaler.live.settings import KubernetesSettings, kubeconfig

CONNECT_TIMEOUT_S: Final = 1.0
READ_TIMEOUT_S: Final = 3.0
WATCH_S: Final = 8.0
"""A watch is renewed at least so often; a frozen server sends no end of file, and is noticed then."""
MERGE: Final = "application/merge-patch+json"
IN_CLUSTER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ApiError(LauncherError):
    """The API server refuses, or does not answer: one sentence with what to do."""

    def __init__(self, sentence: str, status: int = 0, retry_after_s: float = 0.0) -> None:
        super().__init__(sentence)
        self.status, self.retry_after_s = status, retry_after_s


class Api:
    """One Deployment in one namespace."""

    def __init__(self, *, namespace: str = "", deployment: str, context: str = "") -> None:
        """Find the way: as a pod by its account, else by a kubeconfig. Raises LauncherError."""
        configuration = client.Configuration()
        try:
            if not context and IN_CLUSTER.exists():
                config.load_incluster_config(configuration)
            else:
                config.load_kube_config(kubeconfig(), context or None, configuration)
        except config.ConfigException as wrong:
            raise LauncherError(
                f"no way to Kubernetes by {kubeconfig()}: {wrong}; set KUBECONFIG or TAILPACK_KUBERNETES_CONTEXT"
            ) from wrong
        configuration.retries = False  # the caller knows when to try again
        self.namespace = namespace or _own_namespace(context)
        self.deployment = deployment
        self._host = configuration.host
        api = client.ApiClient(configuration)
        self._core, self._apps = client.CoreV1Api(api), client.AppsV1Api(api)
        self._leases = client.CoordinationV1Api(api)
        self._selector = ""

    def read_deployment(self) -> Raw:
        """Return the Deployment."""
        found = self._request_json(self._apps.read_namespaced_deployment, self.deployment)
        labels: Mapping[str, str] = found["spec"]["selector"]["matchLabels"]
        self._selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return found

    def list_pods(self) -> tuple[list[Raw], str]:
        """Return all pods, and the version from which a watch goes on."""
        found = self._request_json(self._core.list_namespaced_pod, label_selector=self._selector)
        return found["items"], found["metadata"]["resourceVersion"]

    def watch_pods(self, version: str) -> Iterator[tuple[str, Raw]]:
        """Yield (kind of change, pod) since that version, until the server ends the watch, as it does by itself."""
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
                        raise ApiError(f"the watch ended: {event['object'].get('message')}", 410)
                    yield event["type"], event["object"]
        except HTTPError as silent:
            raise self._no_answer_error() from silent
        finally:
            answer.release_conn()

    def annotate(self, pod: Pod, annotations: Mapping[str, str], *, open_gate: bool = False) -> Raw:
        """Write annotations, unless the pod has changed meanwhile (409)."""
        body: Raw = {"metadata": {"annotations": dict(annotations), "resourceVersion": pod.version}}
        if open_gate:
            body["spec"] = {"schedulingGates": None}
        try:
            return self._request_json(self._core.patch_namespaced_pod, pod.name, body=body, _content_type=MERGE)
        except ApiError as gone:
            raise ApiError(str(gone), 409 if gone.status == 404 else gone.status, gone.retry_after_s) from gone

    def delete(self, pod: Pod, *, at_once: bool = True) -> None:
        """Delete that very pod, at once or with the grace that it needs; nothing happens where it has gone."""
        options: Raw = {"preconditions": {"uid": pod.uid}} | ({"gracePeriodSeconds": 0} if at_once else {})
        try:
            self._request_json(self._core.delete_namespaced_pod, pod.name, body=options)
        except ApiError as gone:
            if gone.status not in (404, 409):
                raise

    def scale(self, replicas: int) -> None:
        """Ask for so many pods."""
        body = {"spec": {"replicas": replicas}}
        self._request_json(
            self._apps.patch_namespaced_deployment_scale, self.deployment, body=body, _content_type=MERGE
        )

    def lease(self, name: str, body: Raw | None = None) -> Raw:
        """Return the Lease, changed by `body` unless its version there is not the newest any more (409)."""
        if body is None:
            return self._request_json(self._leases.read_namespaced_lease, name)
        return self._request_json(self._leases.patch_namespaced_lease, name, body=body, _content_type=MERGE)

    def _request_json(self, call: Callable[..., Any], *words: str, **more: Any) -> Raw:
        answer = self._request(call, *words, **more)
        try:
            return json.loads(answer.read())  # type: ignore[no-any-return]
        except (HTTPError, ValueError) as silent:
            raise self._no_answer_error() from silent
        finally:
            answer.release_conn()

    def _request(self, call: Callable[..., Any], *words: str, **more: Any) -> Any:
        """Return the answer, unread. Raises ApiError."""
        more = {"_request_timeout": (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)} | more
        try:
            answer: Any = call(*words, self.namespace, _preload_content=False, **more)
        except ApiException as refused:
            raise self._refusal_error(refused.status, refused.body, refused.headers) from refused
        except HTTPError as silent:
            raise self._no_answer_error() from silent
        if not 200 <= answer.status < 300:
            raise self._refusal_error(answer.status, answer.read(), answer.headers)
        return answer

    def _no_answer_error(self) -> ApiError:
        return ApiError(
            f"the API server at {self._host} does not answer within {READ_TIMEOUT_S:g} s; replicas serve on"
        )

    def _refusal_error(self, status: int | None, body: Any, headers: Any) -> ApiError:
        try:
            said = json.loads(body)["message"]
        except (TypeError, ValueError, KeyError):
            said = str(body)[:200]
        advice = {
            401: "; its token is not valid there",
            403: "; give its Role that verb",
            404: f"; apply infra/k8s to namespace {self.namespace}, or correct TAILPACK_KUBERNETES_NAMESPACE, "
            "…_DEPLOYMENT or …_LEASE",
        }
        wait = str((headers or {}).get("Retry-After", ""))
        retry_after_s = float(wait) if wait.isdigit() else 0.0
        return ApiError(
            f"Kubernetes refuses ({status}): {said}{advice.get(status or 0, '')}", status or 0, retry_after_s
        )


def api_from(told: KubernetesSettings) -> Api:
    """Return the way to the Deployment that the settings name. Raises LauncherError."""
    where = {"namespace": told.kubernetes_namespace, "context": told.kubernetes_context}
    return Api(deployment=told.kubernetes_deployment, **where)


def _own_namespace(context: str) -> str:
    if not context and IN_CLUSTER.exists():
        return IN_CLUSTER.read_text(encoding="utf-8").strip()
    contexts, active = config.list_kube_config_contexts(kubeconfig())
    chosen = next((one for one in contexts if one["name"] == context), active)
    return str(chosen["context"].get("namespace", "default"))
