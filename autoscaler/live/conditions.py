"""Four conditions of an autoscaler, each with a reason and since when: does it observe, act, is it limited, is it kept.

`Keeping` is about the SLO of the last hour, as far as replicas count their late events. `ScaleUps` detects scale-ups
that do not help: the limit is then elsewhere, such as a database that all replicas share.
"""

from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import inf
from typing import Final

import msgspec

from autoscaler.live.hold_reader import NOT_READ
from autoscaler.model import GroupObservation
from autoscaler.policies.guards.holds import Restriction
from contracts.clock import now_us
from contracts.holds import Direction, Hold
from contracts.journal import TickRecord
from contracts.settings import Target

HOUR_S: Final = 3600.0
WATCHED_TICKS: Final = 10
"""Ticks with all new replicas ready after which a scale-up is judged."""
MEAN_TICKS: Final = 5
LEAST_SHARE: Final = 1 / 3
REVERTED_US: Final = 600_000_000
"""Time for which scale-ups that failed are reverted, µs. Then the policy may try again."""
NOT_FRESH: Final = ("offsets", "reports", "members", "holds")
"""Components whose problems mean that something is not observed."""
HELD: Final = {Direction.ALL: "Paused", Direction.IN: "ScaleInPaused", Direction.OUT: "ScaleOutPaused"}
Verdict = tuple[bool | None, str, str]
"""Status (None: unknown), reason and message."""


class Condition(msgspec.Struct, frozen=True):
    """One condition, in the form that Kubernetes uses. since: UTC time of the last change of status or reason."""

    type: str
    status: str
    reason: str
    message: str
    since: str


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
        """Judge after a tick. hold: a pause, a pin, or else an order about `act`."""
        before, now = {one.type: one for one in self.current}, datetime.fromtimestamp(self._clock_us() / 1e6, UTC)
        unread = tick.missing or "; ".join(f"{name}: {problems[name]}" for name in NOT_FRESH if name in problems)
        limited = f"wanted {tick.uncapped} replicas; {tick.planned_replicas} are planned" * bool(tick.rails)
        verdicts: dict[str, Verdict] = {
            "Observing": (not unread, "NotReady" if tick.missing else "Stale" if unread else "Fresh", unread),
            "Acting": self._acting(hold, leads, problems.get("holds", "")),
            "Limited": (bool(tick.rails), tick.rails[-1] if tick.rails else "NoRail", limited),
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

    def _acting(self, hold: Hold | None, leads: bool, problem: str) -> Verdict:
        if self._act != "on":
            return False, self._act.capitalize(), str(hold or "decisions are not carried out")
        if not leads:
            return False, "Standby", "another member leads the group"
        if problem.startswith(NOT_READ):
            return False, "HoldUnknown", problem
        reason = "On" if hold is None or hold.direction is Direction.ON else HELD.get(hold.direction, "Pinned")
        return reason != "Paused", reason, str(hold or "")

    def _keeping(self) -> Verdict:
        late, arrived = (sum(values[number] for values in self._hour) for number in (1, 2))
        if not self._counted or arrived < 1:
            return None, "NotCounted", "no event has arrived" if self._counted else "no replica counts late events"
        share, target = min(1.0, late / arrived), self._target.percentile
        burn = share / (1 - target) if target < 1 else share * inf if share else 0.0
        message = f"{1 - share:.3%} of {arrived:,.0f} events of the last hour in time, target {target:.4g}"
        message += f"; {max(0.0, 1 - burn):.0%} of the budget is left, burn rate {burn:.1f}"
        return burn <= 1, "InBudget" if burn <= 1 else "OverBudget", message


class ScaleUps:
    """Compares the throughput after each scale-up with that before and with the capacity of the new replicas.

    reverts: whether two failures in turn limit the group, for a time, to the replicas that it had before.
    """

    def __init__(self, *, reverts: bool = False) -> None:
        self._reverts, self._before, self._until_us = reverts, 0, 0
        self._served: deque[float] = deque(maxlen=MEAN_TICKS)
        self._last: tuple[int, int] | None = None
        """Time and total lag of the last tick."""
        self._trial: tuple[int, int, float] | None = None
        """Replicas before, planned replicas, and events/s that the group served before."""
        self._ready_ticks = self._failed = 0
        self.problem = ""
        """A sentence about the last scale-ups if they brought too little; else empty."""

    def observe(self, tick: TickRecord) -> None:
        """Add one tick."""
        if not tick.partitions:
            return
        if 0 < self._until_us <= tick.at_us:
            self._failed, self._until_us, self.problem = 0, 0, ""
        lag, arriving = sum(one.lag for one in tick.partitions), sum(one.arrival_rate for one in tick.partitions)
        if self._last is not None and tick.at_us > self._last[0]:
            self._served.append(arriving - (lag - self._last[1]) / (tick.at_us - self._last[0]) * 1e6)
        self._last = tick.at_us, lag
        if tick.action == "up" and len(self._served) == MEAN_TICKS:
            served = sum(self._served) / MEAN_TICKS
            self._trial, self._ready_ticks = (tick.requested_replicas, tick.planned_replicas, served), 0
        elif self._trial is not None and tick.planned_replicas != self._trial[1]:
            self._trial = None  # another change mixes with it
        elif self._trial is not None and tick.ready_replicas >= self._trial[1]:
            self._ready_ticks += 1
            if self._ready_ticks == WATCHED_TICKS:
                self._judge(*self._trial, tick.service_rate, lag)
                self._trial = None
                self._until_us = tick.at_us + REVERTED_US if self._failed > 1 and self._reverts else 0

    def restriction(self) -> Restriction | None:
        """Return the limit while scale-ups are reverted, else None."""
        why = f"reverted to {self._before}: {self.problem}"
        return Restriction(True, True, True, 0, why, most=self._before) if self._until_us else None

    def _judge(self, present: int, planned: int, before: float, rate: float, lag: int) -> None:
        """Judge only if events still wait for longer than a second: otherwise the load has set the throughput."""
        got, expected = sum(self._served) / MEAN_TICKS - before, planned * rate - before
        in_vain = lag >= planned * rate and got < LEAST_SHARE * expected
        self._before = self._before if self._failed else present
        self._failed = self._failed + 1 if in_vain else 0
        self.problem = (
            f"the last {self._failed} scale-ups brought less than a third of what was expected, the newest {got:.0f} "
            f"of {expected:.0f} events/s; look for a limit that all replicas share, such as a database"
        ) * (self._failed > 1)
