"""The pods of a Deployment, as the API server last reported them, and threads that repeat requests to it."""

import threading
from collections.abc import Callable, Iterator
from typing import Final

from autoscaler.live.launcher import LauncherError
from autoscaler.live.launchers.api import Api
from autoscaler.live.launchers.pods import Pod, pod_of

OUTDATED: Final = (409, 410)  # the pod has changed meanwhile, or the watch version is too old
MIN_RETRY_S: Final = 0.2
MAX_RETRY_S: Final = 5.0


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


def repeat(
    name: str, step: Callable[[], object], *, closed: threading.Event, problems: dict[str, str]
) -> threading.Thread:
    """Repeat a step in a thread until `closed` is set. While it fails, problems[name] is the reason."""

    def run() -> None:
        pause_s = MIN_RETRY_S
        while not closed.is_set():
            try:
                step()
                problems[name], pause_s = "", MIN_RETRY_S
            except Exception as error:
                failed = error if isinstance(error, LauncherError) else LauncherError(repr(error))
                if failed.status in OUTDATED:
                    closed.wait(MIN_RETRY_S)
                    continue
                problems[name] = str(failed)
                closed.wait(max(pause_s, failed.retry_after_s))
                pause_s = min(MAX_RETRY_S, 2 * pause_s)

    thread = threading.Thread(target=run, name=f"{name} pods", daemon=True)
    thread.start()
    return thread
