"""What must not happen to events and offsets, counted."""

import numpy as np

from bench.handover.evidence import UNKNOWN, IntArray, Served


def lost(sent_us: IntArray, served: Served) -> int:
    """Return how many events that the broker took were never finished."""
    return int(np.count_nonzero(~np.isin(sent_us, served.intended_us)))


def duplicates(served: Served) -> int:
    """Return how many completions repeat one that was there before."""
    return len(served) - len(np.unique(served.places))


def order_violations(served: Served) -> int:
    """Return how many events were finished after a later one of their partition; repeats do not count again."""
    first = served.first_completions()
    found = 0
    for partition in np.unique(first.partition):
        offsets = first.offset[first.partition == partition]
        found += int(np.count_nonzero(offsets < np.maximum.accumulate(offsets)))
    return found


def offset_regressions(committed: IntArray) -> int:
    """Return how often a committed offset was below one seen before.

    committed: shape (samples, partitions), UNKNOWN where a sample has no value.
    """
    if not len(committed):
        return 0
    highest = np.maximum.accumulate(committed, axis=0)
    return int(np.count_nonzero((committed != UNKNOWN) & (committed < highest)))
