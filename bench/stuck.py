"""What keeps pods from getting ready, named as soon as it is seen, and when there is no use in waiting for them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from autoscaler.live.launchers.pods import STUCK, last_line
from contracts.clock import steady_s

STUCK_S: Final = 30.0
"""What waits so long for an image, a node or a quota does not get it; a node that is added does within a minute."""
CRASHES: Final = 2
"""So many bad ends of one container while nothing else gets ready: the next would be no better. One may be early."""
CRASH_LOOP: Final = "CrashLoopBackOff"
MOST_TOLD: Final = 3

Raw = Mapping[str, Any]


def containers(pod: Raw) -> list[Raw]:
    """Return the status of each container, in the order in which they run."""
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]


def bad_ends(pods: Sequence[Raw]) -> Iterator[str]:
    """Yield how containers ended last that ended badly and do not serve: status and last line."""
    for pod in pods:
        for one in containers(pod):
            if ended := _bad_end(one):
                said = last_line(ended.get("message", "")) or ended.get("reason", "")
                yield f"pod {pod['metadata']['name']}: {one['name']} ended with status {ended['exitCode']}: {said}"


def waits(pods: Sequence[Raw], refused: Sequence[Raw] = ()) -> Iterator[str]:
    """Yield what pods wait for in vain. refused: events of pods that could not even be created."""
    yield from {event["involvedObject"]["name"]: event["message"] for event in refused}.values()
    for pod in pods:
        told = [one["state"].get("waiting", {}) for one in containers(pod)]
        told += [one for one in pod.get("status", {}).get("conditions", ()) if one["type"] == "PodScheduled"]
        for one in told:
            if (reason := one.get("reason", "")).startswith(STUCK) and reason != CRASH_LOOP:
                yield f"pod {pod['metadata']['name']}: {': '.join(filter(None, (reason, one.get('message'))))}"


class Hope:
    """Whether what is missing may still come, and what is known to be in its way."""

    def __init__(self) -> None:
        self.causes = ""
        self._missing: Sequence[str] = ()
        self._ends: dict[str, int] = {}
        """Pod → how often its containers had ended when something got ready last."""
        self._waits_since_s = steady_s()

    def look(self, missing: Sequence[str], pods: Sequence[Raw], refused: Sequence[Raw], *, first_come: bool) -> bool:
        """Take in what is missing now; return whether it may come.

        first_come: brokers and topics are under way; others must crash until they are there.
        """
        waiting, ended = list(waits(pods, refused)), list(bad_ends(pods))
        self.causes = "; ".join(islice((*waiting, *ended), MOST_TOLD))
        ends = {pod["metadata"]["name"]: sum(map(_ends, containers(pod))) for pod in pods}
        if missing != self._missing or first_come:
            self._missing, self._ends = missing, ends
        if not waiting:
            self._waits_since_s = steady_s()
        down = [one["metadata"]["name"] for one in pods if any(map(_bad_end, containers(one)))]
        crash = any(ends[one] - self._ends.get(one, 0) >= CRASHES for one in down)
        return not crash and steady_s() <= self._waits_since_s + STUCK_S


def _bad_end(status: Raw) -> Raw:
    ended: Raw = status["state"].get("terminated") or status.get("lastState", {}).get("terminated") or {}
    return ended if ended.get("exitCode") and not status.get("ready") else {}


def _ends(status: Raw) -> int:
    """Return how often a container has ended; while it waits for its next start that is not counted yet."""
    runs = "running" in status["state"]
    return int(status.get("restartCount", 0)) + (not runs and bool(_bad_end(status)))
