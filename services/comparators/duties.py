"""What has to happen at its time while events are served, in the one thread that serves them."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class _Duty:
    every_s: float
    do: Callable[[], None]
    due_s: float


class Duties:
    """Runs each duty at its interval, whenever the server waits: for the end of an event's service, or for events."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._duties: list[_Duty] = []

    def add(self, every_s: float, do: Callable[[], None]) -> None:
        """Run `do` every `every_s` seconds, first after that time."""
        self._duties.append(_Duty(every_s, do, self._clock() + every_s))

    def run_due(self) -> float:
        """Run what is due; return the seconds until the next duty (at least one must have been added)."""
        for duty in self._duties:
            now_s = self._clock()
            if duty.due_s <= now_s:
                duty.do()
                duty.due_s = max(duty.due_s + duty.every_s, now_s)  # a duty that was late is not repeated in a burst
        return max(0.0, min(duty.due_s for duty in self._duties) - self._clock())

    def wait_until(self, deadline_s: float) -> None:
        """Sleep until `deadline_s` on the clock, running duties that fall into this time."""
        while (left_s := deadline_s - self._clock()) > 0:
            self._sleep(min(left_s, self.run_due()))
