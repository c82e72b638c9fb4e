"""Four conditions of an autoscaler, each with a reason and since when: does it observe, act, is it limited, is it kept.

`Keeping` is about the SLO of the last hour, as far as replicas count their late events.
"""

from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from autoscaler.model import GroupObservation
from contracts.clock import now_us
from contracts.holds import Direction, Hold
from contracts.journal import TickRecord
from contracts.settings import Target

HOUR_S: Final = 3600.0
NOT_FRESH: Final = ("offsets", "reports", "members", "holds")
"""Components whose problems mean that something is not observed."""
HELD: Final = {Direction.ALL: "Paused", Direction.IN: "ScaleInPaused", Direction.OUT: "ScaleOutPaused"}
Verdict = tuple[bool | None, str, str]
"""Status (None: unknown), reason and message."""


class Condition(msgspec.Struct, frozen=True):
    """One condition, in the form that Kubernetes uses."""

    type: str
    status: str
    """True, False or Unknown."""
    reason: str
    message: str
    since: str
    """Time of the last change of status or reason, UTC."""


class Conditions:
    """The present conditions. show: called with each condition and its value: 1, 0, or NaN if it is unknown."""

    def __init__(
        self, act: str, target: Target, show: Callable[[str, float], None], clock_us: Callable[[], int] = now_us
    ) -> None:
        self._act, self._target, self._show, self._clock_us = act, target, show, clock_us
        self._hour: deque[tuple[float, float, float]] = deque()
        """Time of each observation, its late events, and its arrivals."""
        self._counted = False
        self.current: tuple[Condition, ...] = ()
        """May be read from another thread."""

    def observe(self, observation: GroupObservation) -> None:
        """Add the late events that replicas have reported."""
        at_s = observation.at_s
        reported = [one.late for one in observation.replicas] + [*observation.late_of_removed_replicas.values()]
        self._counted = self._counted or any(late is not None for late in reported)
        passed_s = at_s - self._hour[-1][0] if self._hour else 0.0
        arrived = sum(load.arrival_rate for load in observation.partitions) * passed_s
        self._hour.append((at_s, sum(late or 0 for late in reported), arrived))
        while self._hour[0][0] <= at_s - HOUR_S:
            self._hour.popleft()

    def update(self, tick: TickRecord, hold: Hold | None, problems: Mapping[str, str], *, leads: bool) -> None:
        """Judge after a tick."""
        before, now = {one.type: one for one in self.current}, datetime.fromtimestamp(self._clock_us() / 1e6, UTC)
        stale = "; ".join(f"{name}: {problems[name]}" for name in NOT_FRESH if name in problems)
        verdicts: dict[str, Verdict] = {
            "Observing": (not tick.missing and not stale, _freshness(tick, stale), tick.missing or stale),
            "Acting": self._acting(hold, leads),
            "Limited": self._limited(tick),
            "Keeping": self._keeping(),
        }
        found = []
        for kind, (is_true, reason, message) in verdicts.items():
            status, last = "Unknown" if is_true is None else str(is_true), before.get(kind)
            is_same = last is not None and (last.status, last.reason) == (status, reason)
            since = last.since if last and is_same else now.strftime("%Y-%m-%d %H:%M:%S")
            found.append(Condition(kind, status, reason, message, since))
            self._show(kind, float("nan") if is_true is None else float(is_true))
        self.current = tuple(found)

    def _acting(self, hold: Hold | None, leads: bool) -> Verdict:
        if self._act != "on":
            return False, self._act.capitalize(), "decisions are not carried out"
        if not leads:
            return False, "Standby", "another member leads the group"
        reason = "On" if hold is None else HELD.get(hold.direction, "Pinned")
        return reason != "Paused", reason, str(hold or "")

    @staticmethod
    def _limited(tick: TickRecord) -> Verdict:
        if not tick.rails:
            return False, "NoRail", ""
        return True, tick.rails[-1], f"wanted {tick.uncapped} replicas; {tick.planned_replicas} are planned"

    def _keeping(self) -> Verdict:
        late, arrived = (sum(column) for column in [*zip(*self._hour, strict=True)][1:] or ((), ()))
        if not self._counted or arrived < 1:
            return None, "NotCounted", "no replica has reported late events" if arrived >= 1 else "no events"
        share, allowed = min(1.0, late / arrived), 1 - self._target.percentile
        burn = share / allowed if allowed else float(share > 0)
        message = (
            f"{1 - share:.3%} of {arrived:,.0f} events of the last hour in time, target {self._target.percentile:.4g}"
        )
        message += f"; {max(0.0, 1 - burn):.0%} of the budget is left, burn rate {burn:.1f}"
        return burn <= 1, "InBudget" if burn <= 1 else "OverBudget", message


def _freshness(tick: TickRecord, stale: str) -> str:
    return "NotReady" if tick.missing else "Stale" if stale else "Fresh"
