"""Replicas as pods of one Deployment.

The Deployment's pods wait behind a scheduling gate: a pod that is created gets its name in plans, and the gate is
opened, in one step. To stop one replica its pod is made the cheapest to delete, and only then fewer are requested: of
the Deployment, or by plan, of KEDA and its HorizontalPodAutoscaler. Then plans state the count, and pods come and go
later. A pod too many waits behind its gate, and is the next one to get a name.

One thread compares the wanted replicas with the pods and acts, again and again; another one watches the pods.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Final

from autoscaler.live.launcher import Orphan
from autoscaler.live.launchers.api import Api, ApiError
from autoscaler.live.launchers.pods import CHEAPEST, COST, REPLICA, REPORTS_AS, Pod, PodInstance, pod_of
from contracts.clock import monotonic_s

LOOK_S: Final = 1.0
"""Wanted and existing pods are compared so often, even if nothing has happened."""
READ_AGAIN_S: Final = 5.0
"""The Deployment is read again so often: others may have changed its count, and it shows why pods are not created."""
RESERVED_S: Final = 35.0
"""A replica that ended keeps its pod for so long, in which it is started again: longer than the longest back-off."""
GOES_WITHIN_S: Final = 5.0
"""After fewer were requested, the ReplicaSet has so long to delete the intended pod."""
BY_PLAN_WITHIN_S: Final = 30.0
"""The same where others bring the count. The HPA looks every 15 s, and leaves 10 % too many for good."""
PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 5.0


class KubernetesLauncher:
    """Names pods of the Deployment, and keeps their number right. Raises LauncherError: there is no such Deployment.

    why_not: returns before each change why we may not act, as we do not lead; empty: we may. by_plan: others bring the
    count that is in `wanted`.
    """

    def __init__(self, api: Api, why_not: Callable[[], str] = str, *, by_plan: bool = False) -> None:
        self.wanted = 0
        self._by_plan = by_plan
        self._api = api
        self._why_not = why_not
        self._lock = threading.Condition(threading.RLock())
        self._pods: dict[str, Pod] = {}
        self._wanted: dict[str, PodInstance] = {}
        self._going: list[PodInstance] = []
        self._reserved: dict[str, float] = {}
        """Replica that was forgotten → until when its pod is kept (s)."""
        self._adopted = False
        """Until then pods with unknown names are an earlier autoscaler's, and stay."""
        self._changed = False
        self._closed = threading.Event()
        self._troubles = {"lead": "", "watch": "", "act": "", "pods": ""}
        self._asked_for, self._read_s = 0, 0.0
        self._read()
        self._version = self._list()
        self._threads = [
            threading.Thread(target=self._keep, args=(what, step), name=f"{what} pods", daemon=True)
            for what, step in (("watch", self._watch), ("act", self._act))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def trouble(self) -> str:
        """What the API server refuses, that it is silent, or why a pod is not created."""
        return "; ".join(filter(None, dict.fromkeys(self._troubles.values())))

    def start(self, name: str) -> PodInstance:
        """Have one pod more, under `name`; a pod of that name whose container has been restarted is taken as it is."""
        with self._lock:
            self._adopted = True
            self._reserved.pop(name, None)
            here = next((pod for pod in self._living() if pod.replica == name and not self._taken(pod)), None)
            instance = self._wanted[name] = PodInstance(name, self._tell, here)
            self._tell()
            return instance

    def remember(self, name: str, incarnation: str) -> None:
        """Have its pod annotated."""
        with self._lock:
            if name in self._wanted:
                self._wanted[name].incarnation = incarnation
                self._tell()

    def forget(self, name: str) -> None:
        """Keep its pod until it is started again, unless it was asked to stop; a second call ends that."""
        with self._lock:
            instance = self._wanted.pop(name, None)
            self._reserved.pop(name, None)
            if instance is not None and not instance.asked and not instance.killed:
                self._reserved[name] = monotonic_s() + RESERVED_S
            self._tell()

    def find_orphans(self) -> Iterator[Orphan]:
        """Return the pods that have names."""
        with self._lock:
            self._adopted = True
            for pod in list(self._living()):
                if pod.replica and pod.replica not in self._wanted:
                    instance = self._wanted[pod.replica] = PodInstance(pod.replica, self._tell, pod)
                    started, _, instance.incarnation = pod.notes.get(REPORTS_AS, "").partition(" ")
                    instance.started = int(started) if started.isdigit() else pod.started
                    instance.see(pod, gone=False)
                    yield Orphan(pod.replica, instance, instance.incarnation)

    def last_log_line(self, name: str) -> str:
        """Return what the kubelet kept of its log."""
        instance = self._wanted.get(name)
        return instance.last_words if instance else ""

    def close(self) -> None:
        """Do what is left to do once more, and end the threads. Pods stay."""
        self._closed.set()
        self._tell()
        self._threads[1].join(PAUSE_S)
        with contextlib.suppress(ApiError):
            self._step()

    def _tell(self) -> None:
        with self._lock:
            self._changed = True
            self._lock.notify_all()

    def _living(self) -> Iterator[Pod]:
        return (pod for pod in self._pods.values() if not pod.leaves)

    def _instances(self) -> list[PodInstance]:
        with self._lock:
            return [*self._wanted.values(), *self._going]

    def _taken(self, pod: Pod) -> bool:
        return any(one.pod and one.pod.uid == pod.uid and one.exit() is None for one in self._instances())

    def _see(self, pod: Pod, *, gone: bool = False) -> None:
        with self._lock:
            self._pods[pod.uid] = pod
            if gone:
                del self._pods[pod.uid]
            for one in self._instances():
                if one.pod and one.pod.uid == pod.uid:
                    one.see(pod, gone=gone)
            self._tell()

    def _list(self) -> str:
        found, version = self._api.pods()
        with self._lock:
            there = {pod.uid: pod for pod in map(pod_of, found)}
            for pod in {**self._pods, **there}.values():
                self._see(pod, gone=pod.uid not in there)
        return version

    def _keep(self, what: str, step: Callable[[], object]) -> None:
        """Take `step` again and again until closed. Each failure is shown, and followed by a longer pause."""
        pause_s = PAUSE_S
        while not self._closed.is_set():
            try:
                step()
                self._troubles[what], pause_s = "", PAUSE_S
            except Exception as wrong:
                failed = wrong if isinstance(wrong, ApiError) else ApiError(f"{type(wrong).__name__}: {wrong}")
                if failed.status in (409, 410):  # a pod has changed meanwhile, a watch began too far back
                    self._closed.wait(PAUSE_S)
                    continue
                self._troubles[what] = str(failed)
                self._closed.wait(max(pause_s, failed.wait_s))
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    def _watch(self) -> None:
        """Follow the pods until the server ends the watch. After a failure all pods are read anew."""
        if not self._version:
            self._version = self._list()
        version, self._version = self._version, ""
        for kind, raw in self._api.changes(version):
            version = raw["metadata"]["resourceVersion"]
            if kind != "BOOKMARK":
                self._see(pod_of(raw), gone=kind == "DELETED")
        self._version = version

    def _act(self) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._changed or self._closed.is_set(), timeout=LOOK_S)
            self._changed = False
        self._step()

    def _step(self) -> None:
        """Bring the pods nearer to what is wanted. Raises ApiError."""
        self._troubles["lead"] = self._why_not()
        if not self._adopted or self._troubles["lead"]:
            return
        if monotonic_s() - self._read_s > READ_AGAIN_S:
            self._read()
        self._sort_out()
        for one in [one for one in self._instances() if one.killed and one.pod and one.exit() is None]:
            self._api.delete(one.pod)  # type: ignore[arg-type]
        self._name_pods()
        for one in self._instances():
            if one.incarnation and one.exit() is None:
                self._annotate(one, REPORTS_AS, f"{one.started} {one.incarnation}")
        for one in self._going:
            if one.pod and not one.pod.leaves:
                self._annotate(one, COST, CHEAPEST)
        self._scale()

    def _annotate(self, one: PodInstance, note: str, value: str) -> None:
        if one.pod and one.pod.notes.get(note) != value:
            self._see(pod_of(self._api.annotate(one.pod, {note: value})))

    def _sort_out(self) -> None:
        """Separate the wanted replicas from those that shall go, and from those that have gone."""
        with self._lock:
            now_s = monotonic_s()
            self._reserved = {name: until_s for name, until_s in self._reserved.items() if until_s > now_s}
            for one in self._wanted.values():
                if one.pod is None and (one.asked or one.killed):
                    one.never_ran()
                if one.asked and one.exit() is None:
                    self._going += [] if one in self._going else [one]
            self._going = [one for one in self._going if one.exit() is None or (one.pod and one.pod.uid in self._pods)]
            known = {one.pod.uid for one in self._instances() if one.pod}
            for pod in self._living():  # the name is not wanted any more
                if pod.replica and pod.uid not in known and pod.replica not in self._reserved:
                    self._going.append(PodInstance(pod.replica, self._tell, pod))

    def _name_pods(self) -> None:
        with self._lock:
            nameless = sorted((pod for pod in self._living() if pod.gated), key=lambda pod: pod.created)
            waiting = [one for one in self._wanted.values() if one.pod is None and one.exit() is None]
        for one, pod in zip(waiting, nameless, strict=False):
            named = pod_of(self._api.annotate(pod, {REPLICA: one.replica}, open_gate=True))
            with self._lock:
                one.pod, one.started = named, named.started
                self._pods[named.uid] = named
        self._troubles["pods"] = next((one.stuck for one in self._instances() if one.stuck), "")

    def _scale(self) -> None:
        """Set the number of pods. One that goes is left out once the ReplicaSet will choose that very pod."""
        with self._lock:
            going = [one for one in self._going if one.pod and not one.pod.leaves]
            uids = {one.pod.uid for one in going if one.pod}
            awaited = any(one.pod is None and one.exit() is None for one in self._wanted.values())
            others = [pod for pod in self._living() if pod.uid not in uids and (awaited or not pod.gated)]
            others_ready = all(pod.ready for pod in others)  # a pod without a name may go as well
            cheapest = [one for one in going if one.pod and one.pod.notes.get(COST) == CHEAPEST]
            out = [one for one in cheapest if others_ready or not (one.pod and one.pod.ready)]
            staying = sum(not one.asked for one in self._wanted.values())
            count = staying + len(self._reserved) + len(going) - len(out)
            more, now_s = count > self._asked_for, monotonic_s()
            released = [one for one in going if one.released_s]
        if self._by_plan:  # one more is wanted again, or the HPA lets it be: a gated pod takes its place, or none
            for one in released:
                if more or now_s - one.released_s > BY_PLAN_WITHIN_S:
                    self._api.delete(one.pod, at_once=False)  # type: ignore[arg-type]
        elif more and any(now_s - one.released_s < GOES_WITHIN_S for one in released):
            return  # else the one that is about to go would be counted as the one more
        if count != self._asked_for:
            if not self._by_plan:
                self._api.scale(count)
            self.wanted = count if self._by_plan else 0
            self._asked_for = count
            for one in out:
                one.released_s = one.released_s or monotonic_s()

    def _read(self) -> None:
        found = self._api.look()
        failures = [one for one in found.get("status", {}).get("conditions", []) if one["type"] == "ReplicaFailure"]
        for one in self._instances():
            one.why_none = failures[0]["message"] if failures else ""
        self._asked_for = self.wanted if self._by_plan else found["spec"]["replicas"]
        self._read_s = monotonic_s()
