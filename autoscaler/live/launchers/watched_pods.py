"""The pods of a Deployment, as the API server last reported them."""

import threading
from collections.abc import Callable, Iterator

from autoscaler.live.launchers.api import Api
from autoscaler.live.launchers.pods import Pod, pod_of


class WatchedPods:
    """The newest known state of each pod. Raises LauncherError if the pods cannot be listed.

    lock: guards the pods. on_change: called under the lock with a new state (`is_deleted`: the last one) of a pod.
    """

    def __init__(self, api: Api, lock: threading.Condition, on_change: Callable[..., None]) -> None:
        self._api, self._lock, self._on_change = api, lock, on_change
        self.by_uid: dict[str, Pod] = {}
        self._version = self._list()

    def living(self) -> Iterator[Pod]:
        """Yield the pods that the ReplicaSet counts."""
        return (pod for pod in self.by_uid.values() if not pod.is_terminating)

    def observe(self, pod: Pod, *, is_deleted: bool = False) -> None:
        """Store a newer state of a pod."""
        with self._lock:
            self.by_uid[pod.uid] = pod
            if is_deleted:
                del self.by_uid[pod.uid]
            self._on_change(pod, is_deleted=is_deleted)

    def watch(self) -> None:
        """Follow the pods until the server ends the watch. After a failure, list all pods again."""
        if not self._version:
            self._version = self._list()
        version, self._version = self._version, ""
        for kind, raw in self._api.watch_pods(version):
            version = raw["metadata"]["resourceVersion"]
            if kind != "BOOKMARK":
                self.observe(pod_of(raw), is_deleted=kind == "DELETED")
        self._version = version

    def _list(self) -> str:
        found, version = self._api.list_pods()
        with self._lock:
            listed = {pod.uid: pod for pod in map(pod_of, found)}
            for pod in {**self.by_uid, **listed}.values():
                self.observe(pod, is_deleted=pod.uid not in listed)
        return version
