"""Long series for a page: fewer entries, and every peak still there.

Averages and samples lose the very second that matters; so of each bucket its least and its largest value are kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ENTRIES: Final = 12_000
"""Entries of one series that a page holds for zooming: three hours by the second, ten in steps of three."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """A series in buckets of `step` entries. NaN where a bucket holds nothing known."""

    step: int
    low: Floats
    high: Floats


def bucket(entries: int, limit: int) -> int:
    """Return how many entries share a bucket, so that at most `limit` buckets come out. limit: at least 1."""
    return max(1, -(-entries // limit))


def reduce(values: Sequence[float | None], step: int) -> Reduced:
    """Return the least and the largest known value of every `step` entries; the last bucket may hold fewer."""
    rows = _rows(floats(values), step)
    return Reduced(step, np.fmin.reduce(rows, axis=1), np.fmax.reduce(rows, axis=1))


def worst_entries(stack: Mapping[str, Sequence[int]], step: int) -> dict[str, NDArray[np.int64]]:
    """Return of every `step` entries the one whose sum over the stack is largest, so that bars keep their heights."""
    if not stack:
        return {}
    rows = {name: _rows(np.array(values, float), step) for name, values in stack.items()}
    total = np.nan_to_num(np.sum(list(rows.values()), axis=0))
    worst = total.argmax(axis=1)
    return {name: np.nan_to_num(values[np.arange(len(worst)), worst]).astype(np.int64) for name, values in rows.items()}


def floats(values: Sequence[float | None]) -> Floats:
    """Return the values as an array, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _rows(values: Floats, step: int) -> Floats:
    """Return the values in rows of `step`; the last is filled up with NaN."""
    missing = -len(values) % step
    return np.append(values, np.full(missing, np.nan)).reshape(-1, step)
