"""What will happen when: timed actions of a simulated world, carried out in order of time, then of entry."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count


class Agenda:
    """A queue of actions. Whoever turns the world asks for what is due; actions may add further ones, also for now."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, at_us: int, action: Callable[[], None]) -> None:
        """Carry out `action` at `at_us` (µs since the start). What lost its point meanwhile does nothing then."""
        heappush(self._entries, (at_us, next(self._order), action))

    def next_us(self) -> int | None:
        """Return when the next action is due; None when nothing is to be done."""
        return self._entries[0][0] if self._entries else None

    def pop(self) -> Callable[[], None]:
        """Take out the next action."""
        return heappop(self._entries)[2]
