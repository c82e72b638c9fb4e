"""Replicas as pods of one Deployment.

New pods wait behind a scheduling gate. One request writes the replica's name into the pod and opens the gate. To stop a
replica, its pod first gets the lowest deletion cost, then the requested count is lowered: in the Deployment, or in the
plan for KEDA and its HorizontalPodAutoscaler (HPA). A surplus pod waits behind its gate for the next name.

One thread compares the wanted replicas with the pods and acts. Another thread watches the pods.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from autoscaler.live.launcher import LauncherError, Orphan
from autoscaler.live.launchers.api import Api, why_ungated
from autoscaler.live.launchers.pods import DELETION_COST, LOWEST_COST, REPLICA, REPORTS_AS, Pod, PodInstance, pod_of
from autoscaler.live.launchers.watched_pods import MIN_RETRY_S, WatchedPods, repeat
from contracts.clock import monotonic_s

COMPARE_INTERVAL_S: Final = 1.0
"""Longest time between two comparisons of wanted and existing pods."""
READ_INTERVAL_S: Final = 5.0
"""Interval of reading the Deployment: another client may change its count, and it shows why pods are missing."""
RESERVATION_S: Final = 35.0
"""How long an exited replica keeps its pod for a restart. Longer than the longest back-off."""
DELETION_TIMEOUT_S: Final = 5.0
"""Time for the ReplicaSet to delete the released pod before a new pod is requested."""
HPA_DELETION_TIMEOUT_S: Final = 30.0
"""Time for the HPA to delete the released pod. Then the launcher deletes it. The HPA acts every 15 s and tolerates 10 %
surplus pods."""


class KubernetesLauncher:
    """Names the pods of a Deployment and controls their number. Raises LauncherError, also without the scheduling gate.

    why_not_leading: called before each change. Returns why this autoscaler may not act, empty if it leads.
    by_plan: KEDA or an HPA scales by `wanted`. The launcher does not write the count into the Deployment.
    """

    def __init__(self, api: Api, why_not_leading: Callable[[], str] = str, *, by_plan: bool = False) -> None:
        self.wanted, self._by_plan = 0, by_plan
        self._api, self._why_not_leading = api, why_not_leading
        self._lock = threading.Condition(threading.RLock())
        self._wanted: dict[str, PodInstance] = {}
        self._leaving: list[PodInstance] = []
        self._reserved: dict[str, float] = {}
        """Exited replica → time until which its pod is kept, seconds."""
        self._adopted = False
        """Whether orphans were adopted. Until then, pods with unknown names are an earlier autoscaler's and stay."""
        self._changed, self._closed = False, threading.Event()
        self._problems = {"lead": "", "watch": "", "act": "", "pods": "", "template": ""}
        self._requested_count, self._read_s = 0, 0.0
        self.annotations: Mapping[str, str] = {}
        """Annotations of the Deployment, by which an operator pauses or pins the group."""
        self._read()
        if self._problems["template"]:
            raise LauncherError(self._problems["template"])
        self._pods = WatchedPods(api, self._lock, self._observe_pod)
        repeating = partial(repeat, closed=self._closed, problems=self._problems)
        self._threads = [repeating("watch", self._pods.watch), repeating("act", self._act)]

    @property
    def problem(self) -> str:
        """Current problem: no leadership, a failed request to the API server, or a stuck pod; empty: none."""
        return "; ".join(filter(None, dict.fromkeys(self._problems.values())))

    def start(self, name: str) -> PodInstance:
        """Request one more pod for `name`. If its earlier pod still exists, because its container restarts, use it."""
        with self._lock:
            self._adopted = True
            self._reserved.pop(name, None)
            taken = {instance.pod.uid for instance in self._instances() if instance.pod and not instance.exit()}
            existing = next((pod for pod in self._pods.living() if pod.replica == name and pod.uid not in taken), None)
            instance = self._wanted[name] = PodInstance(name, self._notify, existing)
            self._notify()
            return instance

    def save_incarnation(self, name: str, incarnation: str) -> None:
        """Annotate the pod of `name` in the background."""
        with self._lock:
            if name in self._wanted:
                self._wanted[name].incarnation = incarnation
                self._notify()

    def forget(self, name: str) -> None:
        """Reserve the pod of `name` for a restart, unless a stop was requested. A second call ends the reservation."""
        with self._lock:
            instance = self._wanted.pop(name, None)
            self._reserved.pop(name, None)
            if instance is not None and not instance.stop_requested and not instance.kill_requested:
                self._reserved[name] = monotonic_s() + RESERVATION_S
            self._notify()

    def find_orphans(self) -> Iterator[Orphan]:
        """Yield the pods that have replica names."""
        with self._lock:
            self._adopted = True
            for pod in list(self._pods.living()):
                if pod.replica and pod.replica not in self._wanted:
                    instance = self._wanted[pod.replica] = PodInstance(pod.replica, self._notify, pod)
                    started, _, instance.incarnation = pod.annotations.get(REPORTS_AS, "").partition(" ")
                    instance.started = int(started) if started.isdigit() else pod.started
                    instance.observe(pod, is_deleted=False)
                    yield Orphan(pod.replica, instance, instance.incarnation)

    def last_log_line(self, name: str) -> str:
        """Return the last line of the replica's log that the kubelet kept."""
        instance = self._wanted.get(name)
        return instance.last_log_line if instance else ""

    def close(self) -> None:
        """Stop the threads. Compare the wanted replicas with the pods for the last time, and act. Pods keep running."""
        self._closed.set()
        self._notify()
        self._threads[1].join(MIN_RETRY_S)
        with contextlib.suppress(LauncherError):
            self._step()

    def _notify(self) -> None:
        with self._lock:
            self._changed = True
            self._lock.notify_all()

    def _instances(self) -> list[PodInstance]:
        with self._lock:
            return [*self._wanted.values(), *self._leaving]

    def _observe_pod(self, pod: Pod, *, is_deleted: bool) -> None:
        for instance in self._instances():
            if instance.pod and instance.pod.uid == pod.uid:
                instance.observe(pod, is_deleted=is_deleted)
        self._notify()

    def _act(self) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._changed or self._closed.is_set(), timeout=COMPARE_INTERVAL_S)
            self._changed = False
        self._step()

    def _step(self) -> None:
        """Take one step from the existing to the wanted pods. Raises LauncherError."""
        self._problems["lead"] = self._why_not_leading()
        if not self._adopted or self._problems["lead"]:
            return
        if monotonic_s() - self._read_s > READ_INTERVAL_S:
            self._read()
        self._select_leaving_pods()
        killed = [instance.pod for instance in self._instances() if instance.kill_requested and not instance.exit()]
        for pod in filter(None, killed):
            self._api.delete(pod)
        self._name_pods()
        for instance in self._instances():
            if instance.incarnation and instance.exit() is None:
                self._annotate(instance, REPORTS_AS, f"{instance.started} {instance.incarnation}")
        for instance in self._leaving:
            if instance.pod and not instance.pod.is_terminating:
                self._annotate(instance, DELETION_COST, LOWEST_COST)
        self._scale()

    def _annotate(self, instance: PodInstance, note: str, value: str) -> None:
        if instance.pod and instance.pod.annotations.get(note) != value:
            self._pods.observe(pod_of(self._api.annotate(instance.pod, {note: value})))

    def _select_leaving_pods(self) -> None:
        """Move instances that shall stop to `_leaving`, and drop those whose pods no longer exist."""
        with self._lock:
            now_s = monotonic_s()
            self._reserved = {name: until_s for name, until_s in self._reserved.items() if until_s > now_s}
            for instance in self._wanted.values():
                if instance.pod is None and (instance.stop_requested or instance.kill_requested):
                    instance.cancel()
                if instance.stop_requested and instance.exit() is None:
                    self._leaving += [] if instance in self._leaving else [instance]
            there = self._pods.by_uid
            self._leaving = [one for one in self._leaving if not one.exit() or (one.pod and one.pod.uid in there)]
            known = {instance.pod.uid for instance in self._instances() if instance.pod}
            for pod in self._pods.living():  # pods with names that no replica has now
                if pod.replica and pod.uid not in known and pod.replica not in self._reserved:
                    self._leaving.append(PodInstance(pod.replica, self._notify, pod))

    def _name_pods(self) -> None:
        with self._lock:
            nameless = sorted((pod for pod in self._pods.living() if pod.is_gated), key=lambda pod: pod.created)
            wanted = self._wanted.values()
            waiting = [instance for instance in wanted if instance.pod is None and instance.exit() is None]
        for instance, pod in zip(waiting, nameless, strict=False):
            named = pod_of(self._api.annotate(pod, {REPLICA: instance.replica}, open_gate=True))
            with self._lock:
                instance.pod, instance.started = named, named.started
                self._pods.by_uid[named.uid] = named
        self._problems["pods"] = next(filter(None, (instance.stuck_reason for instance in self._instances())), "")

    def _scale(self) -> None:
        """Set the number of pods. A leaving pod is not counted once the ReplicaSet will choose exactly this pod."""
        with self._lock:
            leaving = [(one, pod) for one in self._leaving if (pod := one.pod) and not pod.is_terminating]
            uids = {pod.uid for _, pod in leaving}
            is_awaiting = any(instance.pod is None and instance.exit() is None for instance in self._wanted.values())
            others = [pod for pod in self._pods.living() if pod.uid not in uids and (is_awaiting or not pod.is_gated)]
            others_ready = all(pod.ready for pod in others)  # the ReplicaSet deletes pods that are not ready first
            cheapest = [(one, pod) for one, pod in leaving if pod.annotations.get(DELETION_COST) == LOWEST_COST]
            excluded = [one for one, pod in cheapest if others_ready or not pod.ready]
            staying = sum(not instance.stop_requested for instance in self._wanted.values())
            count = staying + len(self._reserved) + len(leaving) - len(excluded)
            is_growing, now_s = count > self._requested_count, monotonic_s()
            released = [(pod, now_s - one.released_s) for one, pod in leaving if one.released_s]
        if self._by_plan:  # the HPA may keep a surplus pod, so delete exactly this one; a gated pod may replace it
            for pod, since_s in released:
                if is_growing or since_s > HPA_DELETION_TIMEOUT_S:
                    self._api.delete(pod, at_once=False)
        elif is_growing and any(since_s < DELETION_TIMEOUT_S for _, since_s in released):
            return  # wait for the deletion: else the leaving pod would count as the new one
        if count != self._requested_count:
            if not self._by_plan:
                self._api.scale(count, version=self._read())
            self.wanted = count if self._by_plan else 0
            self._requested_count = count
            for instance in excluded:
                instance.released_s = instance.released_s or monotonic_s()

    def _read(self) -> str:
        """Read the Deployment and return its version."""
        found = self._api.read_deployment()
        self._problems["template"] = why_ungated(found)  # while it is wrong, pods with names are still controlled
        conditions = found.get("status", {}).get("conditions", [])
        failures = [condition["message"] for condition in conditions if condition["type"] == "ReplicaFailure"]
        for instance in self._instances():
            instance.no_pod_reason = next(iter(failures), "")
        self.annotations = found["metadata"].get("annotations") or {}
        self._requested_count = self.wanted if self._by_plan else found["spec"]["replicas"]
        self._read_s = monotonic_s()
        return str(found["metadata"]["resourceVersion"])
