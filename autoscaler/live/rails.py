"""The table [rails] of an operator: limits of the replica count, of single changes, and times without changes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, ClassVar, Final
from zoneinfo import ZoneInfo

import msgspec

from autoscaler.policies.guards.holds import Held, Restriction
from autoscaler.policies.guards.rails import Steps
from autoscaler.policies.settings import Limits
from autoscaler.ports import Policy
from contracts.clock import now_us
from contracts.settings import Rules, Settings, Values, setting
from contracts.validation import DECODE_ERRORS, InvalidSettingsError, parse

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EXAMPLE: Final = "Mon-Fri 08:00-18:00 scale-in off"
_WINDOW: Final = re.compile(
    rf"({'|'.join(DAYS)})(?:-({'|'.join(DAYS)}))? ([01]\d|2[0-4]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)"
    " (scale-in|scale-out|all) off"
)
LIMITS: Final = {"min": "min_replicas", "max": "max_replicas"}
"""Rail → setting that it replaces. Other rails that are also settings have the same name."""


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


def _windows_open(of: Values) -> str | None:
    for text in of["windows"]:
        try:
            Window.of(text)
        except ValueError as wrong:
            return str(wrong)
    return None


def _zone_exists(of: Values) -> str | None:
    try:
        ZoneInfo(of["time_zone"])
    except (ValueError, OSError, LookupError):
        return "unknown; write for example Europe/Berlin"
    return None


@dataclass(frozen=True, kw_only=True)
class Rails(Settings):
    """Limits that hold whatever the policy wants."""

    min: int = setting(1, "replicas", least=1)
    """As `min_replicas`, and replaces it."""
    max: int = setting(0, "replicas", least=0)
    """As `max_replicas`, and replaces it."""
    max_step_up: int = setting(0, "replicas", least=0)
    """Most replicas that one decision adds; 0: any number."""
    max_step_down: int = setting(0, "replicas", least=0)
    """Most replicas that one decision removes; 0: any number."""
    cool_down_up_s: float = setting(0.0, "s", least=0)
    """As the setting of this name, and replaces it."""
    cool_down_down_s: float = setting(0.0, "s", least=0)
    """As the setting of this name, and replaces it."""
    moves_per_minute: int = setting(0, "partitions", least=0)
    """Most partitions that change their owner within a minute; 0: any number."""
    windows: tuple[str, ...] = setting(())
    """Times without changes, such as `Mon-Fri 08:00-18:00 scale-in off`."""
    time_zone: str = setting("UTC")
    """Time zone of the windows, such as Europe/Berlin."""
    fallback: bool = setting(True)
    """Whether a count by rate and lag replaces the decisions of a policy that fails."""
    RULES: ClassVar[Rules] = (("windows", _windows_open), ("time_zone", _zone_exists))


@cache
def rails_of(text: str) -> tuple[Rails, dict[str, Any]]:
    """Return the rails in a JSON object, and the settings that they replace. Raises InvalidSettingsError."""
    try:
        given = msgspec.json.decode(text or "{}", type=dict[str, Any])
    except DECODE_ERRORS as wrong:
        raise InvalidSettingsError([f"must be a table of a file, or a JSON object: {wrong}"]) from wrong
    rails = parse(given, Rails)
    replaced = {LIMITS.get(name, name): getattr(rails, name) for name in given}
    return rails, {name: value for name, value in replaced.items() if hasattr(Limits, name)}


def railed(
    policy: Policy, text: str, limits: Limits, replica_prefix: str, clock_us: Callable[[], int] = now_us
) -> Policy:
    """Return the policy inside the guards of the rails that are set. text: JSON object of the rails."""
    rails, _ = rails_of(text)
    zone, windows = ZoneInfo(rails.time_zone), [*map(Window.of, rails.windows)]

    def closed() -> Restriction | None:
        local = datetime.fromtimestamp(clock_us() / 1e6, UTC).astimezone(zone)
        shut = [window for window in windows if window.is_open(local)]
        off, why = {window.off for window in shut}, "; ".join(window.text for window in shut)
        may_grow, may_shrink, may_move = (not off & {way, "all"} for way in ("scale-out", "scale-in", "moves"))
        return Restriction(may_grow, may_shrink, may_move, 0, f"{why} ({rails.time_zone})") if shut else None

    steps = {name: getattr(rails, name) for name in ("max_step_up", "max_step_down", "moves_per_minute")}
    if any(steps.values()):
        policy = Steps(policy, **steps, replica_prefix=replica_prefix)
    if windows:
        policy = Held(policy, hold=closed, limits=limits, replica_prefix=replica_prefix, rail="window")
    return policy
