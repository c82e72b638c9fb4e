"""The state of a replica's pod at the API server, and its instance for the scaler."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from autoscaler.live.launcher import Exit
from contracts.children import describe_exit
from contracts.progress import Progress

Raw = dict[str, Any]

REPLICA: Final = "tailpack/replica"
"""Annotation with the replica name of the pod in plans. The container reads it at its start."""
REPORTS_AS: Final = "tailpack/reports-as"
"""Annotation with two values: number of the container's start, and incarnation in its reports."""
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
LOWEST_COST: Final = "-1000"
GATE: Final = "tailpack/unnamed"
"""Scheduling gate of the pod template: no container starts before its pod has a name."""
STUCK_REASONS: Final = (
    *("ErrImage", "ImagePullBackOff", "InvalidImageName", "Unschedulable"),
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"),
)


@dataclass(frozen=True, slots=True)
class Pod:
    """The part of a pod's state that the launcher uses."""

    name: str
    uid: str
    address: str
    version: str
    created: str
    annotations: Mapping[str, str]
    is_gated: bool
    is_terminating: bool
    """The pod is being deleted or has failed, so the ReplicaSet does not count it."""
    ready: bool
    started: int
    """Number of exited containers, which is the number of the current or next container."""
    running: bool
    waiting_reason: str
    exit: Exit | None
    last_log_line: str

    @property
    def replica(self) -> str:
        """Replica name in plans; empty: none yet."""
        return "" if self.is_gated else self.annotations.get(REPLICA, "")


def pod_of(raw: Raw) -> Pod:
    """Return the state of a pod from the API server's JSON object."""
    about, status = raw["metadata"], raw.get("status", {})
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    container: Raw = next(iter(status.get("containerStatuses", [])), {})
    state = container.get("state", {})
    ended = state.get("terminated") or container.get("lastState", {}).get("terminated")
    scheduled = conditions.get("PodScheduled", {})
    waiting = state.get("waiting") or (scheduled if scheduled.get("status") == "False" else {})
    failed = status.get("phase") == "Failed"
    return Pod(
        name=about["name"],
        uid=about["uid"],
        address=status.get("podIP", ""),
        version=about["resourceVersion"],
        created=about["creationTimestamp"],
        annotations=about.get("annotations", {}),
        is_gated=any(gate["name"] == GATE for gate in raw["spec"].get("schedulingGates", [])),
        is_terminating=failed or "deletionTimestamp" in about,
        ready=conditions.get("Ready", {}).get("status") == "True",
        started=container.get("restartCount", 0) + ((bool(ended) and "running" not in state) or failed),
        running="running" in state,
        waiting_reason=": ".join(filter(None, (waiting.get("reason", "no container yet"), waiting.get("message", "")))),
        exit=_exit_of(ended or {}, status) if ended or failed else None,
        last_log_line=last_line((ended or {}).get("message") or status.get("message", "")),
    )


def last_line(text: str) -> str:
    """Return the last line of a log, or its `message` if it is a JSON object."""
    line = text.strip().rpartition("\n")[2]
    try:
        return str(json.loads(line)["message"])
    except (ValueError, TypeError, KeyError):
        return line


def _exit_of(ended: Raw, status: Raw) -> Exit:
    code = ended.get("exitCode", 1)
    cause = status.get("reason") or (ended.get("reason") if ended.get("reason") not in ("Error", "Completed") else "")
    description = describe_exit(code if code < 128 else 128 - code)
    return Exit(f"{description}: {cause}" if cause else description, is_clean=code == 0 and not cause)


@dataclass(slots=True, eq=False)
class PodInstance:
    """One run of a replica's container: ended, running, or waiting for its pod. Guarded by its launcher's lock."""

    replica: str
    on_change: Callable[[], None]
    pod: Pod | None = None
    """Newest known state; None: no pod yet."""
    started: int = 0
    """Number of the container in its pod, from 0."""
    incarnation: str = ""
    no_pod_reason: str = ""
    stop_requested: bool = False
    kill_requested: bool = False
    released_s: float = 0.0
    """When the requested count was lowered for this instance; 0: not yet."""
    _ended: Exit | None = None

    def __post_init__(self) -> None:
        self.started = self.pod.started if self.pod else 0

    @property
    def description(self) -> str:
        """`pod` and its name, or `a new pod` before it has a name."""
        return f"pod {self.pod.name}" if self.pod else "a new pod"

    @property
    def identity(self) -> str:
        """The pod's uid and the number of the container; empty: no pod yet."""
        return f"{self.pod.uid}/{self.started}" if self.pod else ""

    @property
    def address(self) -> str:
        """The pod's IP address; empty: not known yet."""
        return self.pod.address if self.pod else ""

    @property
    def pending_reason(self) -> str:
        """Why the container does not run yet: no pod, node or image; empty: it runs or has exited."""
        if self._ended is not None or (self.pod is not None and self.pod.running):
            return ""
        no_pod = f"no pod yet: {self.no_pod_reason}" if self.no_pod_reason else "no pod yet"
        return f"{self.description}: {self.pod.waiting_reason}" if self.pod else no_pod

    @property
    def last_log_line(self) -> str:
        """The last line of the container's log, once it has exited."""
        return self.pod.last_log_line if self.pod and self._ended else ""

    def exit(self) -> Exit | None:
        """Return how the container exited, or that its pod was deleted; None: neither has happened."""
        return self._ended

    def is_source_of(self, report: Progress) -> bool:
        """Compare the pod's name. After the container's exit, compare the incarnation too: the pod may restart it."""
        is_same_pod = self.pod is not None and report.host == self.pod.name[:63]
        return is_same_pod and (self._ended is None or report.incarnation == self.incarnation)

    def terminate(self) -> None:
        """Let the launcher delete the pod with its grace period."""
        self.stop_requested = True
        self.on_change()

    def kill(self) -> None:
        """Let the launcher delete the pod at once."""
        self.kill_requested = True
        self.on_change()

    def observe(self, pod: Pod, *, is_deleted: bool) -> None:
        """Store a newer state of the pod. Once it was deleted or its container has exited, this instance has ended."""
        self.pod = pod
        has_exited = pod.started > self.started
        if self._ended is None and (is_deleted or has_exited):
            self._ended = (pod.exit if has_exited else None) or Exit("its pod was deleted", is_clean=False)

    def cancel(self) -> None:
        """Mark this instance as exited before it got a pod."""
        self._ended = Exit("had no pod yet", is_clean=True)

    @property
    def stuck_reason(self) -> str:
        """Why the container cannot run until an operator acts; empty: no action is needed."""
        is_stuck = self.pod.waiting_reason.startswith(STUCK_REASONS) if self.pod else bool(self.no_pod_reason)
        ended = self.pod.exit if self.pod else None
        last_exit = f"; its last exit: {ended.description}: {self.pod.last_log_line}" if self.pod and ended else ""
        return f"{self.pending_reason}{last_exit}" if is_stuck and self.pending_reason else ""
