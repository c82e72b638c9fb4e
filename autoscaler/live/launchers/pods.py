"""One pod of ours: its state at the API server, and the instance of a replica that it is."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from autoscaler.live.launcher import Exit
from contracts.children import describe_exit
from contracts.progress import Progress

Raw = dict[str, Any]

REPLICA: Final = "tailpack/replica"
"""Annotation: the name under which plans know the pod. The container reads it as it starts."""
REPORTS_AS: Final = "tailpack/reports-as"
"""Annotation: restarts of the container until the incarnation that follows, by which it reports itself."""
COST: Final = "controller.kubernetes.io/pod-deletion-cost"
CHEAPEST: Final = "-1000"
GATE: Final = "tailpack/unnamed"
"""Scheduling gate of the pod template: no container starts before its pod has a name."""
STUCK_REASONS: Final = (
    *("ErrImage", "ImagePullBackOff", "InvalidImageName", "Unschedulable"),
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"),
)


@dataclass(frozen=True, slots=True)
class Pod:
    """The part of a pod's state that is used."""

    name: str
    uid: str
    version: str
    created: str
    notes: Mapping[str, str]
    gated: bool
    leaves: bool
    """It is being deleted, or has failed: the ReplicaSet does not count it any more."""
    ready: bool
    started: int
    """How many times its container has ended: the number of the container that runs, or shall run next."""
    running: bool
    waits: str
    exit: Exit | None
    last_words: str

    @property
    def replica(self) -> str:
        """Its name in plans; empty before it has one."""
        return "" if self.gated else self.notes.get(REPLICA, "")


def pod_of(raw: Raw) -> Pod:
    """Return the pod that the API server has described."""
    about, status = raw["metadata"], raw.get("status", {})
    conditions = {one["type"]: one for one in status.get("conditions", [])}
    container: Raw = next(iter(status.get("containerStatuses", [])), {})
    state = container.get("state", {})
    ended = state.get("terminated") or container.get("lastState", {}).get("terminated")
    scheduled = conditions.get("PodScheduled", {})
    waiting = state.get("waiting") or (scheduled if scheduled.get("status") == "False" else {})
    failed = status.get("phase") == "Failed"
    return Pod(
        name=about["name"],
        uid=about["uid"],
        version=about["resourceVersion"],
        created=about["creationTimestamp"],
        notes=about.get("annotations", {}),
        gated=any(one["name"] == GATE for one in raw["spec"].get("schedulingGates", [])),
        leaves=failed or "deletionTimestamp" in about,
        ready=conditions.get("Ready", {}).get("status") == "True",
        started=container.get("restartCount", 0) + ((bool(ended) and "running" not in state) or failed),
        running="running" in state,
        waits=": ".join(filter(None, (waiting.get("reason", "no container yet"), waiting.get("message", "")))),
        exit=_exit_of(ended or {}, status) if ended or failed else None,
        last_words=last_line((ended or {}).get("message") or status.get("message", "")),
    )


def last_line(text: str) -> str:
    """Return the last line of a log; of a JSON object its message."""
    line = text.strip().rpartition("\n")[2]
    try:
        return str(json.loads(line)["message"])
    except (ValueError, TypeError, KeyError):
        return line


def _exit_of(ended: Raw, status: Raw) -> Exit:
    code = ended.get("exitCode", 1)
    why = status.get("reason") or (ended.get("reason") if ended.get("reason") not in ("Error", "Completed") else "")
    how = describe_exit(code if code < 128 else 128 - code)
    return Exit(f"{how}: {why}" if why else how, clean=code == 0 and not why)


@dataclass(slots=True, eq=False)
class PodInstance:
    """One container that ran, runs or shall run in a pod of ours. Changed under its launcher's lock alone."""

    replica: str
    changed: Callable[[], None]
    pod: Pod | None = None
    """Newest known state; None: none was created yet."""
    started: int = 0
    """Which start of that pod's container it is."""
    incarnation: str = ""
    why_none: str = ""
    asked: bool = False
    killed: bool = False
    released_s: float = 0.0
    """When fewer pods were requested on its account; 0: not yet."""
    _ended: Exit | None = None

    def __post_init__(self) -> None:
        self.started = self.pod.started if self.pod else 0

    @property
    def where(self) -> str:
        """The pod's name."""
        return f"pod {self.pod.name}" if self.pod else "a pod to come"

    @property
    def pending(self) -> str:
        """Why it does not run: there is no pod, no node for it, no image yet."""
        if self._ended is not None or (self.pod is not None and self.pod.running):
            return ""
        none = f"no pod yet: {self.why_none}" if self.why_none else "no pod yet"
        return f"{self.where}: {self.pod.waits}" if self.pod else none

    @property
    def last_words(self) -> str:
        """The last line that it wrote, once it has ended."""
        return self.pod.last_words if self.pod and self._ended else ""

    def exit(self) -> Exit | None:
        """Return how its container ended, or that its pod was deleted."""
        return self._ended

    def wrote(self, report: Progress) -> bool:
        """Compare the name of the pod; of a container that ended in a living pod, the known incarnation."""
        ours = self.pod is not None and report.host == self.pod.name[:63]
        return ours and (self._ended is None or report.incarnation == self.incarnation)

    def ask_to_stop(self) -> None:
        """Have its pod deleted with the grace that it needs."""
        self.asked = True
        self.changed()

    def kill(self) -> None:
        """Have its pod deleted at once."""
        self.killed = True
        self.changed()

    def see(self, pod: Pod, *, gone: bool) -> None:
        """Take in a newer state of its pod."""
        self.pod = pod
        if self._ended is None and (gone or pod.started > self.started):
            self._ended = (pod.exit if pod.started > self.started else None) or Exit("its pod was deleted", clean=False)

    def never_ran(self) -> None:
        """Note that it is not wanted any more, and has no pod."""
        self._ended = Exit("had no pod yet", clean=True)

    @property
    def stuck(self) -> str:
        """Why it will not run without a repair; empty: it will."""
        stuck = self.pod.waits.startswith(STUCK_REASONS) if self.pod else bool(self.why_none)
        ended = self.pod.exit if self.pod else None
        how = f"; it ended with {ended.how}: {self.pod.last_words}" if self.pod and ended else ""
        return f"{self.pending}{how}" if stuck and self.pending else ""
