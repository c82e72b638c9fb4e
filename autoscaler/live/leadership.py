"""Leader election by a Kubernetes Lease: one autoscaler leads, the others stand by. The plan log fences writes anyway.

Clocks of different machines are never compared. The leader counts the Lease's age from when it sent its last successful
renewal. A standby counts it from the answer that first showed this renewal, and takes over if the age is above the
duration. While the API server is down, the leader keeps running: no standby can take over without that server.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from autoscaler.live.configuration import policy_config_of
from autoscaler.live.launcher import LauncherError
from autoscaler.live.loop import warm_up_policy
from autoscaler.live.metrics import CONDITION, LEADING, MetricSet
from autoscaler.live.problems import PERSISTENT_TICKS, Problems
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.web import Source, serving
from contracts.clock import monotonic_s
from contracts.waiting import Stop

log = logging.getLogger("autoscaler")
COMPONENT: Final = "leadership"
RENEWALS_PER_LEASE: Final = 5
"""Renewals in one lease. A call may take up to half a lease. If it exceeds the interval, the next follows at once."""
POLL_INTERVAL_S: Final = 0.25


class Leadership:
    """Takes and renews the Lease for this autoscaler, and notices when another autoscaler leads.

    lease: called with a name and returns this Lease. If there is a second argument, it changes the Lease first: a list
    is a JSON patch, and an object with an outdated version is refused. Raises LauncherError. duration_s: duration of
    the Lease. on_lost: called from another thread with the reason when another autoscaler has taken over.
    """

    def __init__(
        self,
        lease: Callable[..., dict[str, Any]],
        name: str,
        identity: str,
        duration_s: float,
        on_lost: Callable[[str], None] = lambda _: None,
        *,
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._lease, self._name, self._identity, self._duration_s = lease, name, identity, duration_s
        self._on_lost, self._clock = on_lost, clock
        self._version, self._since_s = "", clock()
        """Newest known version of the Lease, and when an answer first showed it. A failed call moves this time."""
        self._checked_s = self._since_s
        """When the last call was sent whose answer showed this version."""
        self._renewed_s = -duration_s
        """When the call was sent that took or renewed the Lease."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="leadership", daemon=True)
        self.holder = self.problem = ""

    @property
    def is_leader(self) -> bool:
        """Whether the Lease was renewed within its duration, so that no other autoscaler can have taken over."""
        return self._clock() - self._renewed_s < self._duration_s

    @property
    def why_not_leading(self) -> str:
        """Why this autoscaler may not act as the leader; empty: it may."""
        expired = f"Lease {self._name} was not renewed for {self._duration_s:g} s: another process may lead"
        return "" if self.is_leader else self.problem or expired

    def acquire(self, stop: Stop, report: Callable[[str], None] = lambda _: None) -> bool:
        """Wait until this autoscaler leads (True) or `stop` is set.

        report: called after each failed attempt (every 0.25 s) with the reason why the Lease could not be used; empty
        if another autoscaler holds it.
        """
        while not self.try_acquire():
            report(self.problem)
            if stop.wait(POLL_INTERVAL_S):
                return False
        self._thread.start()
        return True

    def try_acquire(self) -> bool:
        """Take the Lease if it is free, expired or held by this autoscaler. Return whether this autoscaler leads."""
        sent_s = self._clock()
        try:
            found = self._lease(self._name)
            spec, version = found.get("spec") or {}, found["metadata"]["resourceVersion"]
            self.holder = spec.get("holderIdentity") or ""
            if version != self._version:
                self._version, self._since_s = version, self._clock()
            self._checked_s = max(sent_s, self._since_s)
            has_expired = sent_s - self._since_s > self._duration_s
            if self.holder in ("", self._identity) or has_expired:
                now, sent_s = _now(), self._clock()
                taken: dict[str, Any] = {"holderIdentity": self._identity, "acquireTime": now, "renewTime": now}
                taken["leaseDurationSeconds"] = round(self._duration_s)
                taken["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
                self._lease(self._name, {"metadata": {"resourceVersion": version}, "spec": taken})
                self.holder, self._renewed_s = self._identity, sent_s
            self.problem = ""
        except LauncherError as failed:
            self.problem, failed_s = str(failed), self._clock()
            self._since_s += failed_s - self._checked_s  # this time does not count, because the leader could not renew
            self._checked_s = failed_s
        return self.holder == self._identity and self.is_leader

    def renew(self) -> float:
        """Renew the Lease that this autoscaler holds. Return the seconds until the next renewal is due."""
        sent_s = self._clock()
        try:
            self._change("renewTime", _now())
            self._renewed_s, self.problem = sent_s, ""
        except LauncherError as failed:
            self.problem = str(failed)
            if failed.status:  # refused: another autoscaler may hold the Lease, or an operator has emptied it
                self.try_acquire()
        return max(0.0, sent_s + self._duration_s / RENEWALS_PER_LEASE - self._clock())

    def release(self) -> None:
        """Release the Lease, so that a standby takes over at once."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(self._duration_s)
        with suppress(LauncherError):  # the next leader waits until it expires
            self._change("holderIdentity", "")

    def _keep(self) -> None:
        pause_s = 0.0
        while not self._ended.wait(pause_s):
            pause_s = self.renew()
            if self.holder not in ("", self._identity):
                self._on_lost(f"Lost leadership to {self.holder} (Lease {self._name})")
                return

    def _change(self, field: str, value: str) -> None:
        """Change one field by one call, which the server refuses if another autoscaler holds the Lease."""
        held = {"op": "test", "path": "/spec/holderIdentity", "value": self._identity}
        self._lease(self._name, [held, {"op": "add", "path": f"/spec/{field}", "value": value}])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def stand_by(leadership: Leadership, settings: AutoscalerSettings, stop: Stop) -> bool:
    """Compile the policy, then wait until this autoscaler leads (True) or `stop` is set. Raises PortTakenError.

    The pages show which autoscaler leads, or why this one cannot.
    """
    throw_away, partitions = policy_config_of(settings).policy(), max(1, settings.payment_partitions)
    # before the pages open: a standby that is Ready can lead at once
    warm_up_policy(throw_away, partitions, settings.decision_interval_s, stop.is_set)
    metrics = MetricSet((LEADING, CONDITION))
    metrics[CONDITION].labels(COMPONENT).set(0)
    problems = Problems(log.warning, lambda name, has_problem: metrics[CONDITION].labels(name).set(has_problem))
    source = Source(
        last_tick=lambda: (1, 0.0),  # a standby does not tick
        plan=dict,
        registry=metrics.registry,
        tick_limit_s=1.0,
        problems=lambda: problems.current or {COMPONENT: f"standby; {leadership.holder or 'no autoscaler'} leads"},
        not_ready_reason=lambda: problems.current.get(COMPONENT, ""),
    )
    with serving(source, settings) as start:
        start()
        return leadership.acquire(stop, partial(problems.report, COMPONENT, after=PERSISTENT_TICKS))
