"""The exact packing, as an integer program solved by HiGHS: a yardstick, too slow to decide by every second.

min Σ g_j  subject to  Σ_j p_ij = 1,  Σ_i p_ij·λ_i ≤ g_j·rate_j,  Σ_i p_ij·lag_i ≤ g_j·lag_j,  p and g binary
(Ezzeddine, Baude, Huet, CLOSER 2024).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array

from autoscaler.packing.bins import Bin, Capacity, Item
from autoscaler.packing.least_loaded import least_loaded

TOLERANCE = 1e-6
"""HiGHS counts as whole, and as fitting, what is off by this share."""


@dataclass(frozen=True, slots=True)
class ExactPacking:
    """The best packing found, and what is known about better ones."""

    bins: tuple[Bin, ...]
    """Those in use. Where bins differ, they are in the order in which they were given."""
    least: int
    """No packing has fewer bins."""

    @property
    def count(self) -> int:
        """Bins in use."""
        return len(self.bins)

    @property
    def optimal(self) -> bool:
        """Whether no packing has fewer bins; if not, the time was too short to find out."""
        return self.count == self.least

    @property
    def gap(self) -> float:
        """(bins − least)/bins: 0 is optimal."""
        return (self.count - self.least) / self.count if self.bins else 0.0


def exact(
    items: Sequence[Item], capacity: Capacity, *, capacities: Sequence[Capacity] = (), time_limit_s: float = 10.0
) -> ExactPacking:
    """Pack `items` into the fewest bins, or say after `time_limit_s` how far from it the best packing may be.

    capacities: of bins that differ from `capacity`; those beyond them are as `capacity`. They hold to a millionth.
    An item bigger than a bin counts as exactly one full bin, as in Least-Loaded: only idle partitions can join it.
    Raises ValueError for a time limit that is not positive.
    """
    if not 0 < time_limit_s < inf:
        raise ValueError(f"the time limit must be positive and finite, got {time_limit_s} s")
    busy = [item for item in items if not item.idle]
    idle = tuple(item for item in items if item.idle)
    if not busy:
        return ExactPacking((Bin(idle),), 1) if idle else ExactPacking((), 0)
    known = least_loaded(busy, capacity)
    shares = _shares(busy, [*capacities, *[capacity] * len(known)])
    least = ceil(max(_demand(one) for one in shares) - TOLERANCE)
    found = ExactPacking(known, max(1, least))
    if not found.optimal:
        found = _solved(busy, shares, found, time_limit_s, alike=not capacities)
    first, *others = found.bins
    return ExactPacking((Bin(first.items + idle), *others), found.least)


def _shares(items: Sequence[Item], bins: Sequence[Capacity]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each item takes of each bin, in rate and in lag: 1 and 1 where it is bigger."""
    rates, lags = (np.array([getattr(item, what) for item in items]) for what in ("arrival_rate", "lag"))
    by_rate = rates[:, None] / np.array([one.arrival_rate for one in bins])
    by_lag = lags[:, None] / np.array([one.lag for one in bins])
    bigger = np.maximum(by_rate, by_lag) > 1
    return np.where(bigger, 1.0, by_rate), np.where(bigger, 1.0, by_lag)


def _demand(shares: NDArray[np.float64]) -> float:
    """Return how many bins the sum alone demands if each item counts as in the bin where it takes least."""
    return float(shares.min(axis=1).sum())


def _solved(
    items: Sequence[Item],
    shares: tuple[NDArray[np.float64], NDArray[np.float64]],
    known: ExactPacking,
    time_limit_s: float,
    *,
    alike: bool,
) -> ExactPacking:
    """Return the better of `known` and what the solver finds. Variables: item i in bin j, row by row; bin j in use.

    alike: bins are interchangeable. Then item i need not look beyond bin i, and bins are used in order.
    """
    count, bins = shares[0].shape
    allowed = np.ones((count, bins))
    in_use = np.concatenate((np.zeros(count * bins), np.ones(bins)))
    constraints = [
        LinearConstraint(_each_once(count, bins), 1, 1),
        *(LinearConstraint(_within(one), -inf, 0) for one in shares),
        LinearConstraint(in_use[None, :], known.least, known.count),
    ]
    if alike:
        allowed[np.arange(bins) > np.arange(count)[:, None]] = 0
        constraints.append(LinearConstraint(_in_order(count, bins), 0, inf))
    found = milp(
        in_use,
        constraints=constraints,
        integrality=np.ones_like(in_use),
        bounds=Bounds(0, np.concatenate((allowed.ravel(), np.ones(bins)))),
        options={"time_limit": time_limit_s},
    )
    dual = found.mip_dual_bound
    proved = ceil(dual - TOLERANCE) if dual is not None and isfinite(dual) else known.least
    least = min(max(known.least, proved), known.count)
    if found.x is None:
        return ExactPacking(known.bins, least)
    place = found.x[: count * bins].reshape(count, bins).argmax(axis=1).tolist()
    contents = [[item for item, at in zip(items, place, strict=True) if at == number] for number in range(bins)]
    packed = tuple(Bin(tuple(content)) for content in contents if content)
    return ExactPacking(packed, least) if len(packed) < known.count else ExactPacking(known.bins, least)


def _each_once(count: int, bins: int) -> csr_array:
    """Rows: Σ over bins, for each item."""
    rows, columns = np.repeat(np.arange(count), bins), np.arange(count * bins)
    return csr_array(coo_array((np.ones(count * bins), (rows, columns)), shape=(count, count * bins + bins)))


def _within(shares: NDArray[np.float64]) -> csr_array:
    """Rows: Σ over items of their share of the bin − bin in use, for each bin."""
    count, bins = shares.shape
    rows = np.concatenate((np.tile(np.arange(bins), count), np.arange(bins)))
    values = np.concatenate((shares.ravel(), np.full(bins, -1.0)))
    return csr_array(coo_array((values, (rows, np.arange(count * bins + bins))), shape=(bins, count * bins + bins)))


def _in_order(count: int, bins: int) -> csr_array:
    """Rows: bin j in use − bin j + 1 in use."""
    rows = np.repeat(np.arange(bins - 1), 2)
    columns = count * bins + np.stack((np.arange(bins - 1), np.arange(1, bins)), axis=1).ravel()
    values = np.tile([1.0, -1.0], bins - 1)
    return csr_array(coo_array((values, (rows, columns)), shape=(bins - 1, count * bins + bins)))
