"""Sums of keys that a grouping splits: each worker keeps its part, and whoever needs the sum of a key adds them up.

A part is told once a window, one message for each key that came: KG sends one, whoever splits a key up to one for each
worker that has it (`partials` of `tailpack grouping compare`). Amounts are whole, so that any order gives the same sum.
"""

from collections import Counter
from collections.abc import Iterable, Mapping


class Partials:
    """What one worker has seen of each key in the window that is open."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def add(self, key: str, amount: int = 1) -> None:
        """Take in an event."""
        self._open[key] += amount

    def told(self) -> Mapping[str, int]:
        """Close the window: return key → sum, each to be sent to whoever has that key, and open the next."""
        closed, self._open = self._open, Counter()
        return closed


def merged(parts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """Return key → sum over what the workers told of one window, or of any: as if one worker had had each key."""
    sums: Counter[str] = Counter()
    for part in parts:
        sums.update(part)
    return sums
