"""One of several autoscalers leads, by a Lease of Kubernetes; the others stand by. Their log fences plans anyway.

No two clocks are compared: a standby takes over once it has seen the Lease stay the same for longer than it lasts. A
leader that cannot reach the API server goes on: then no other can take over by it either.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from autoscaler.live.composition import policy_from
from autoscaler.live.launcher import LauncherError
from autoscaler.live.loop import warm_up_policy
from autoscaler.live.metrics import LEADING, TROUBLE, Shown
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.troubles import LASTING, Troubles
from autoscaler.live.web import Source, serving
from contracts.clock import monotonic_s

log = logging.getLogger("autoscaler")
WHAT: Final = "leadership"

LASTS_S: Final = 1.5
RENEWED_S: Final = 0.4
LOOK_S: Final = 0.25


Lease = Callable[..., dict[str, Any]]


class Leadership:
    """Our part in it.

    lease: returns a Lease by its name, changed by a body unless somebody else has changed it meanwhile; or raises
    LauncherError. lost: called, from another thread, when somebody else leads.
    """

    def __init__(
        self, lease: Lease, name: str, me: str, lost: Callable[[str], None], clock: Callable[[], float] = monotonic_s
    ) -> None:
        self._lease, self._name, self._me = lease, name, me
        self._lost, self._clock = lost, clock
        self._seen: tuple[str, float] = "", clock()
        """Version of the Lease, and since when it has been that."""
        self._renewed_s = -LASTS_S
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="leadership", daemon=True)
        self.holder = ""
        self.trouble = ""

    @property
    def leads(self) -> bool:
        """Whether nobody else can have taken over: not after a pause that was longer than the Lease lasts."""
        return self._clock() - self._renewed_s < LASTS_S

    @property
    def why_not(self) -> str:
        """Why we may not act as who leads; empty: we may."""
        if self.leads:
            return ""
        return self.trouble or f"Lease {self._name} was not renewed for {LASTS_S:g} s: another one may lead"

    def win(self, stop: threading.Event, tell: Callable[[str], None] = lambda _: None) -> bool:
        """Stand by until we lead (True), or `stop` is set. tell: called after each look with what is in its way."""
        while not self.take():
            tell(self.trouble)
            if stop.wait(LOOK_S):
                return False
        self._thread.start()
        return True

    def take(self) -> bool:
        """Take or keep the Lease if it is ours, nobody's, or has been left; return whether we have it."""
        asked_s = self._clock()
        try:
            found = self._lease(self._name)
            spec, version = found.get("spec") or {}, found["metadata"]["resourceVersion"]
            self.holder = spec.get("holderIdentity") or ""
            if version != self._seen[0]:
                self._seen = version, asked_s
            left = asked_s - self._seen[1] > LASTS_S
            if self.holder in ("", self._me) or left:
                self._lease(self._name, self._body(spec, version, self._me))
                self.holder, self._renewed_s = self._me, asked_s
            self.trouble = ""
        except LauncherError as failed:  # what was seen before says nothing now: the leader could not renew either
            self.trouble = str(failed)
            self._seen = "", asked_s
        return self.holder == self._me and self.leads

    def end(self) -> None:
        """Give it back, so that the next one need not wait."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(LASTS_S)
        if self.leads:
            with suppress(LauncherError):  # the next one waits until it has run out
                found = self._lease(self._name)
                if found["spec"].get("holderIdentity") == self._me:
                    self._lease(self._name, self._body(found["spec"], found["metadata"]["resourceVersion"], ""))

    def _renew(self) -> None:
        while not self._ended.wait(RENEWED_S):
            self.take()
            if self.holder not in ("", self._me):
                self._lost(f"{self.holder} leads now, by Lease {self._name}")
                return

    def _body(self, spec: dict[str, Any], version: str, holder: str) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        changed: dict[str, Any] = {"holderIdentity": holder, "renewTime": now, "leaseDurationSeconds": round(LASTS_S)}
        if spec.get("holderIdentity") != holder:
            changed |= {"acquireTime": now, "leaseTransitions": spec.get("leaseTransitions", 0) + 1}
        return {"metadata": {"resourceVersion": version}, "spec": changed}


def stand_by(leadership: Leadership, settings: AutoscalerSettings, stop: threading.Event) -> bool:
    """Wait, with everything loaded and compiled, until we lead (True) or `stop` is set. Raises PortTakenError.

    The pages show which autoscaler leads, or why this one cannot.
    """
    warm_up_policy(  # before the pages: a standby that is Ready can lead at once
        policy_from(settings),
        partitions=max(1, settings.payment_partitions),
        service_rate=settings.service_rate,
        interval_s=settings.decision_interval_s,
        done=stop.is_set,
    )
    shown = Shown((LEADING, TROUBLE))
    shown[TROUBLE].labels(WHAT).set(0)
    troubles = Troubles(log.warning, lambda what, is_so: shown[TROUBLE].labels(what).set(is_so))
    source = Source(
        last_tick=lambda: (1, 0.0),  # there is none to wait for
        plan=dict,
        registry=shown.registry,
        tick_limit_s=1.0,
        troubles=lambda: troubles.now or {WHAT: f"stands by; {leadership.holder or 'nobody'} leads"},
        unready=lambda: troubles.now.get(WHAT, ""),
    )
    with serving(source, settings) as begin:
        begin()
        return leadership.win(stop, partial(troubles.tell, WHAT, after=LASTING))
