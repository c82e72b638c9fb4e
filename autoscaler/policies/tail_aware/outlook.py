"""How far a decision looks ahead: to where all that it can begin now has shown what it brings."""

from dataclasses import dataclass
from math import ceil
from typing import Final

ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Outlook:
    """Times in s from now. Intervals in which nothing that is decided now can matter are left out, and not counted."""

    intervals: tuple[int, ...]
    """Those of the next decision intervals that are looked at; 1 is the next one."""
    until_s: float
    """So far into them."""
    near_s: float
    """Until here a plan is paid for. What is looked at beyond, for the sake of a start, is not: to begin it an interval
    later is early enough for the interval after."""
    start_s: float
    """From here a replica that is asked for now serves; 0: at once."""


def outlook(*, interval_s: float, reach_s: float, startup_s: float) -> Outlook:
    """Return what is looked at.

    reach_s: all that waits or is moved now is settled by then. startup_s: a start is judged by the interval after it,
    which is lost when it is begun an interval later, and by the queue that the interval before it leaves.
    """
    near = max(1, ceil(reach_s / interval_s - ROUNDING))
    last = ceil((startup_s + interval_s) / interval_s - ROUNDING) if startup_s > 0 else 0
    intervals = (*range(1, near + 1), *range(max(near + 1, last - 1), last + 1))
    start_s = max(0.0, startup_s - (max(near, last) - len(intervals)) * interval_s)
    near_s = near * interval_s
    return Outlook(intervals, max(near_s, start_s + interval_s if startup_s > 0 else 0.0), near_s, start_s)
