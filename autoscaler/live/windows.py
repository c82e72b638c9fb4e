"""Windows: times of the week in which an operator wants no changes of a kind."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from autoscaler.policies.guards.holds import Held, Restriction
from autoscaler.policies.settings import Limits
from autoscaler.ports import Policy
from contracts.clock import now_us
from contracts.settings import Values

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EXAMPLE: Final = "Mon-Fri 08:00-18:00 scale-in off"
_WINDOW: Final = re.compile(
    rf"({'|'.join(DAYS)})(?:-({'|'.join(DAYS)}))? ([01]\d|2[0-4]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)"
    " (scale-in|scale-out|all) off"
)


@dataclass(frozen=True, slots=True)
class Window:
    """A time of the week in which a kind of change is off. It begins on one of `days` and may end the day after."""

    text: str
    days: frozenset[int]
    begin_min: int
    end_min: int
    off: str

    @classmethod
    def of(cls, text: str) -> "Window":
        """Return the window that a text describes. Raises ValueError."""
        if (found := _WINDOW.fullmatch(text)) is None:
            raise ValueError(f"{text!r}: write for example {EXAMPLE!r}; also scale-out off, or all off")
        first, last = DAYS.index(found[1]), DAYS.index(found[2] or found[1])
        begin, end = int(found[3]) * 60 + int(found[4]), int(found[5]) * 60 + int(found[6])
        if begin == end or max(begin, end) > 24 * 60:
            raise ValueError(f"{text!r}: never opens; it must begin and end at two times of a day")
        days = frozenset((first + more) % 7 for more in range((last - first) % 7 + 1))
        return cls(text, days, begin, end, found[7])

    def is_open(self, at: datetime) -> bool:
        """Return whether the window contains a local time."""
        minute, day = at.hour * 60 + at.minute, at.weekday()
        if self.begin_min < self.end_min:
            return day in self.days and self.begin_min <= minute < self.end_min
        since_yesterday = (at - timedelta(days=1)).weekday() in self.days and minute < self.end_min
        return since_yesterday or (day in self.days and minute >= self.begin_min)


def windows_open(of: Values) -> str | None:
    """Return why one of the windows is not valid: a rule of settings."""
    try:
        [*map(Window.of, of["windows"])]
    except ValueError as wrong:
        return str(wrong)
    return None


def zone_exists(of: Values) -> str | None:
    """Return why the time zone is not valid: a rule of settings."""
    try:
        ZoneInfo(of["time_zone"])
    except (ValueError, OSError, LookupError):
        return "unknown; write for example Europe/Berlin"
    return None


def in_windows(
    policy: Policy,
    texts: Sequence[str],
    time_zone: str,
    limits: Limits,
    prefix: str,
    *,
    clock_us: Callable[[], int] = now_us,
) -> Policy:
    """Return the policy inside a guard that prevents changes while a window is open. prefix: of the replicas' names."""
    zone, windows = ZoneInfo(time_zone), [*map(Window.of, texts)]

    def closed() -> Restriction | None:
        local = datetime.fromtimestamp(clock_us() / 1e6, UTC).astimezone(zone)
        shut = [window for window in windows if window.is_open(local)]
        off, why = {window.off for window in shut}, "; ".join(window.text for window in shut)
        may_grow, may_shrink, may_move = (not off & {way, "all"} for way in ("scale-out", "scale-in", "moves"))
        return Restriction(may_grow, may_shrink, may_move, 0, f"{why} ({time_zone})") if shut else None

    return Held(policy, hold=closed, limits=limits, replica_prefix=prefix, rail="window") if windows else policy
